// Bubble fractions against the closed forms (Narayanan et al. 2021, sections 2.2.1 and 2.2.2).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "cases.h"
#include "result/report.h"
#include "run/reference.h"

namespace rehearse {
namespace {

// A run of equal stages with free messages; F = 1/v, B = 2/v.
double worst_deviation(const Plan& plan, const Schedule& order) {
  const Schedule schedule = add_transfers(order, true);
  const Tasks tasks = derive_tasks(schedule, plan);
  const Loads loads = fixed_loads(schedule, tasks, [&](const Op& op) {
    if (!is_compute(op.kind)) return 0.0;
    return (op.kind == OpKind::backward ? 2.0 : 1.0) / plan.vpp;
  });
  const Timeline timeline = reference(schedule, tasks, loads);
  double worst = 0;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const double bubble = bubble_fraction(timeline.ranks[rank], schedule.ranks[rank], timeline.end());
    worst = std::max(worst, std::abs(bubble - ideal_bubble_fraction(plan)));
  }
  return worst;
}

// Every shape when REHEARSE_EXHAUSTIVE is set (half an hour), else a sample that keeps the ends of each
// range.
bool exhaustive() {
  return std::getenv("REHEARSE_EXHAUSTIVE") != nullptr;
}

std::vector<int> sample(std::vector<int> all) {
  if (exhaustive() || all.size() <= 3) return all;
  return {all.front(), all[1], all.back()};
}

std::vector<int> microbatch_counts(int step, int first) {
  std::vector<int> counts;
  for (int m = first; m <= 512; m += step) counts.push_back(m);
  return sample(counts);
}

std::vector<int> interleaved_ranks() {
  if (!exhaustive()) return {2, 3, 4, 8, 13, 64};
  std::vector<int> ranks(63);
  std::iota(ranks.begin(), ranks.end(), 2);
  return ranks;
}

TEST(Bubble, OfOneForwardOneBackwardEqualsTheClosedFormForAllShapes) {
  for (int p = 2; p <= 64; ++p) {
    for (const int m : microbatch_counts(1, p)) {
      EXPECT_LT(worst_deviation(pipeline_plan(p, 1, m), orders::one_f_one_b({p, m})), 1e-9)
          << "p " << p << " m " << m;
    }
  }
}

TEST(Bubble, OfGpipeEqualsTheClosedFormForAllShapes) {
  for (int p = 2; p <= 64; ++p) {
    for (const int m : microbatch_counts(1, p)) {
      Plan plan = pipeline_plan(p, 1, m);
      plan.schedule = ScheduleName::gpipe;
      EXPECT_LT(worst_deviation(plan, orders::gpipe({p, m})), 1e-9) << "p " << p << " m " << m;
    }
  }
}

TEST(Bubble, OfInterleavingEqualsTheClosedFormForAllShapes) {
  for (const int p : interleaved_ranks()) {
    for (const int v : sample({2, 3, 4, 5, 6, 7, 8})) {
      for (const int m : microbatch_counts(p, p)) {
        EXPECT_LT(worst_deviation(pipeline_plan(p, v, m), orders::interleaved({p, m, v})), 1e-9)
            << "p " << p << " v " << v << " m " << m;
      }
    }
  }
}

TEST(Bubble, OfSplitBackwardsEqualsTheClosedFormForAllShapes) {
  for (const int p : {2, 3, 4, 8, 13, 64}) {
    for (const int m : sample({2 * p, 2 * p + 1, 3 * p, 256})) {
      for (const ScheduleName name :
           {ScheduleName::zb_h1, ScheduleName::zb_h2, ScheduleName::zb_v, ScheduleName::dualpipe_v}) {
        Plan plan = pipeline_plan(p, is_v_shaped(name) ? 2 : 1, m);
        plan.schedule = name;
        EXPECT_LT(worst_deviation(plan, make_order(plan)), 1e-9)
            << to_string(name) << " p " << p << " m " << m;
      }
    }
  }
}

}  // namespace
}  // namespace rehearse
