// With equal stages and free messages an order fixes the length of the iteration. The literals are figures of
// two public generators (sail-sg/zero-bubble-pipeline-parallelism and AMD-AGI/Primus) run with F = B = W = 1
// per full stage: a full backward takes 2, a microbatch 3, and an op of one of v chunks 1/v of that.
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <cmath>
#include <ostream>

#include "replay.h"
#include "schedule/orders.h"
#include "schedule/passes.h"

namespace rehearse {
namespace {

Replay run(const Schedule& order, int vpp, bool overlap = true) {
  return replay(add_transfers(order, overlap), {1.0 / vpp, 2.0 / vpp});
}

struct Case {
  int pp;
  int microbatches;
  double one_f_one_b;
  double interleaved_2;
  double interleaved_3;
};

void PrintTo(const Case& tried, std::ostream* out) {
  *out << "pp " << tried.pp << ", " << tried.microbatches << " microbatches";
}

class Makespan : public ::testing::TestWithParam<Case> {};

TEST_P(Makespan, EqualsThatOfPublicGenerators) {
  const auto [pp, m, plain, two, three] = GetParam();
  EXPECT_DOUBLE_EQ(run(one_f_one_b(pp, m), 1).makespan, plain);
  EXPECT_NEAR(run(interleaved_1f1b(pp, 2, m), 2).makespan, two, 1e-9 * two);
  EXPECT_NEAR(run(interleaved_1f1b(pp, 3, m), 3).makespan, three, 1e-9 * three);
}

TEST_P(Makespan, StaysWhenComputeWaitsForFreeMessages) {
  const auto [pp, m, plain, two, three] = GetParam();
  EXPECT_DOUBLE_EQ(run(one_f_one_b(pp, m), 1, false).makespan, plain);
  EXPECT_NEAR(run(interleaved_1f1b(pp, 2, m), 2, false).makespan, two, 1e-9 * two);
  EXPECT_NEAR(run(interleaved_1f1b(pp, 3, m), 3, false).makespan, three, 1e-9 * three);
}

INSTANTIATE_TEST_SUITE_P(Published, Makespan,
                         ::testing::Values(Case{4, 12, 45, 40.5, 39}, Case{8, 32, 117, 106.5, 103},
                                           Case{8, 96, 309, 298.5, 295}, Case{16, 192, 621, 598.5, 591},
                                           Case{64, 512, 1725, 1630.5, 1599}));

double idle_fraction(const Replay& replay, std::size_t rank) {
  return 1 - replay.busy[rank] / replay.makespan;
}

// Narayanan et al. 2021, section 2.2.1: bubble over ideal time is (p-1)/m; over the iteration, (p-1)/(m+p-1).
RC_GTEST_PROP(IdleFraction, OfGpipeAnd1F1BIsTheClosedFormOnEveryRank, ()) {
  const int pp = *rc::gen::inRange(1, 17);
  const int m = *rc::gen::inRange(pp, 4 * pp + 1);
  const double backward = *rc::gen::element(1.0, 2.0, 3.0);
  const bool overlap = *rc::gen::arbitrary<bool>();
  const double expected = (pp - 1.0) / (m + pp - 1.0);
  for (const Schedule& order : {gpipe(pp, m), one_f_one_b(pp, m)}) {
    const Replay result = replay(add_transfers(order, overlap), {1, backward});
    for (std::size_t rank = 0; rank < result.busy.size(); ++rank)
      RC_ASSERT(std::abs(idle_fraction(result, rank) - expected) < 1e-12);
  }
}

// Narayanan et al. 2021, section 2.2.2: v chunks divide the bubble by v.
RC_GTEST_PROP(IdleFraction, OfInterleaved1F1BIsTheClosedFormOnEveryRank, ()) {
  const int pp = *rc::gen::inRange(2, 17);
  const int vpp = *rc::gen::inRange(2, 5);
  const int m = pp * *rc::gen::inRange(2, 5);
  const bool overlap = *rc::gen::arbitrary<bool>();
  const double expected = (pp - 1.0) / (vpp * m + pp - 1.0);
  const Replay result = run(interleaved_1f1b(pp, vpp, m), vpp, overlap);
  for (std::size_t rank = 0; rank < result.busy.size(); ++rank)
    RC_ASSERT(std::abs(idle_fraction(result, rank) - expected) < 1e-12);
}

}  // namespace
}  // namespace rehearse
