// A larger message is never faster: in every measured table, on every shipped cluster.
#include "cost/nccl/time_curve.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "cost/nccl/read_model.h"
#include "machines.h"

namespace rehearse::nccl {
namespace {

std::vector<double> without_falls(const std::vector<double>& seconds,
                                  const std::vector<double>& weights = {}) {
  std::vector<Knot> knots;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    knots.push_back({static_cast<double>(i + 1), seconds[i], weights.empty() ? 1 : weights[i]});
  std::vector<double> found;
  for (const Knot& knot : nccl::without_falls(knots)) found.push_back(knot.seconds);
  return found;
}

TEST(WithoutFalls, TakesTheMedianOfFallingNeighbours) {
  using testing::ElementsAre;
  EXPECT_THAT(without_falls({1, 2, 2, 5}), ElementsAre(1, 2, 2, 5));
  EXPECT_THAT(without_falls({1, 9, 2, 3, 10}), ElementsAre(1, 2, 2, 3, 10));  // one outlier moves alone
  EXPECT_THAT(without_falls({9, 8, 1}), ElementsAre(8, 8, 8));
  EXPECT_THAT(without_falls({1, 9, 2, 3, 10}, {1, 100, 1, 1, 1}), ElementsAre(1, 9, 9, 9, 10));
  EXPECT_THAT(without_falls({}), ElementsAre());
}

// So better hardware, whose times are all shorter, keeps its lead.
RC_GTEST_PROP(WithoutFalls, KeepsTheOrderOfTwoSeries, ()) {
  const auto size = static_cast<std::size_t>(*rc::gen::inRange(1, 12));
  const auto some = [size](int least, int most) {
    return *rc::gen::container<std::vector<double>>(
        size, rc::gen::map(rc::gen::inRange(least, most), [](int v) { return static_cast<double>(v); }));
  };
  const std::vector<double> slow = some(1, 9), factor = some(1, 4), weights = some(1, 4);
  std::vector<double> fast;
  for (std::size_t i = 0; i < size; ++i) fast.push_back(slow[i] / factor[i]);
  const std::vector<double> a = without_falls(fast, weights), b = without_falls(slow, weights);
  for (std::size_t i = 0; i < size; ++i) {
    RC_ASSERT(a[i] <= b[i]);
    RC_ASSERT(i == 0 || a[i - 1] <= a[i]);
  }
}

void expect_no_fall(const TimeCurve& curve, const std::string& name) {
  double last = 0;
  for (double octave = 0; octave < 38; octave += 0.093) {
    const double seconds = curve.at(std::exp2(octave)).total();
    ASSERT_GE(seconds, last * (1 - 1e-12)) << name << " at 2^" << octave << " bytes";
    last = seconds;
  }
}

TEST(TimeCurve, NeverFallsInAShippedTable) {
  const Model model = read_model(kDefaultModel);
  for (const Measured& table : model.measured) {
    const KnownSystem& system = model.systems[table.system];
    const GroupShape group{table.members, table.nodes, 1};
    expect_no_fall({model, system.cluster, table.op, group, table.forced},
                   fmt::format("{} {} {}x{}", system.name, nccl_name(table.op), table.nodes, table.members));
  }
}

TEST(TimeCurve, NeverFallsOnAShippedCluster) {
  const Model model = read_model(kDefaultModel);
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = read_cluster(name);
    for (const int nodes : {1, 2, 3, 16, 64}) {
      if ((nodes > 1 && cluster.node.nics == 0) || (nodes == 1 && cluster.node.gpus == 1)) continue;
      const GroupShape group = group_shape(cluster, test::ranks_on(cluster, nodes, cluster.node.gpus));
      for (const auto& [op_name, op] : message_ops())
        expect_no_fall({model, cluster, op, group}, fmt::format("{} {} on {} nodes", name, op_name, nodes));
    }
  }
}

// A size that was measured keeps its time where no other size contradicts it.
TEST(TimeCurve, PassesThroughTheMedianOfItsTable) {
  const Model model = read_model(kDefaultModel);
  std::size_t rows = 0, kept = 0;
  for (const Measured& table : model.measured) {
    const TimeCurve curve(model, model.systems[table.system].cluster, table.op,
                          {table.members, table.nodes, 1}, table.forced);
    for (const Measured::Row& row : table.rows) {
      ++rows;
      kept += std::abs(curve.at(row.bytes).total() / row.seconds - 1) < 1e-9 ? 1 : 0;
    }
  }
  EXPECT_GT(kept, rows * 8 / 10);
}

}  // namespace
}  // namespace rehearse::nccl
