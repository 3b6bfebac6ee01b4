#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "work_case.h"

namespace rehearse {
namespace {

struct Count {
  int all_reduce = 0, all_gather = 0, reduce_scatter = 0;
  bool operator==(const Count&) const = default;
};

Count collectives(const std::vector<Kernel>& kernels) {
  Count count;
  for (const Kernel& kernel : kernels) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (collective == nullptr) continue;
    count.all_reduce += collective->op == CollectiveOp::all_reduce;
    count.all_gather += collective->op == CollectiveOp::all_gather;
    count.reduce_scatter += collective->op == CollectiveOp::reduce_scatter;
  }
  return count;
}

Case case_of(int tp, bool sequence_parallel) {
  Case c{llama(4, 64, 8, 8, 128, 256), {}};
  c.plan.tp = tp;
  c.plan.seq = 32;
  c.plan.sequence_parallel = sequence_parallel;
  return c;
}

TEST(Collectives, OfALayerAreTwoAllReducesEachWay) {
  const Case c = case_of(4, false);
  const Work work = make_work(c.model, c.plan);
  const Block& layer = block_called(work, "layer");
  EXPECT_EQ(collectives(layer.forward), (Count{2, 0, 0}));
  EXPECT_EQ(collectives(layer.backward_input), (Count{2, 0, 0}));
  EXPECT_EQ(collectives(layer.backward_weight), (Count{}));
}

TEST(Collectives, WithSequenceParallelismGatherAndScatterAndGatherOnceMoreForTheWeights) {
  const Case c = case_of(4, true);
  const Work work = make_work(c.model, c.plan);
  const Block& layer = block_called(work, "layer");
  EXPECT_EQ(collectives(layer.forward), (Count{0, 2, 2}));
  EXPECT_EQ(collectives(layer.backward_input), (Count{0, 2, 2}));
  EXPECT_EQ(collectives(layer.backward_weight), (Count{0, 2, 0}));
}

// 32 tokens of 64 values in 2 bytes: a rank sends a quarter of them to the next stage, whose ranks gather
// them.
TEST(Collectives, OfAnArrivalGatherThePartsThatTheRanksOfAnotherStageSent) {
  Case c = case_of(4, false);
  c.plan.pp = 2;
  EXPECT_EQ(make_work(c.model, c.plan).boundary_bytes, 32 * 64 * 2);
  c.plan.scatter_gather = true;
  const Work work = make_work(c.model, c.plan);
  EXPECT_EQ(work.boundary_bytes, 32 * 64 * 2 / 4);
  ASSERT_EQ(collectives(work.arrival.forward), (Count{0, 1, 0}));
  EXPECT_EQ(std::get<Collective>(work.arrival.forward[0].what).bytes, 32 * 64 * 2);
  EXPECT_EQ(work.arrival.bytes_moved(work.arrival.forward[1]), 2 * 32 * 64 * 2);
}

TEST(Collectives, OfAnArrivalAreNoneWhereARankHoldsItsPartAlone) {
  for (const auto& [tp, sequence_parallel] : {std::pair(4, true), std::pair(1, false)}) {
    Case c = case_of(tp, sequence_parallel);
    c.plan.pp = 2;
    c.plan.scatter_gather = true;
    const Work work = make_work(c.model, c.plan);
    EXPECT_TRUE(work.arrival.forward.empty());
    EXPECT_EQ(work.boundary_bytes, 32 * 64 * 2 / tp);
  }
}

TEST(Collectives, OfTheHeadReduceMaximumSumAndTargetOfEveryToken) {
  const Case c = case_of(4, false);
  const Work work = make_work(c.model, c.plan);
  const Block& head = block_called(work, "head");
  EXPECT_EQ(collectives(head.forward), (Count{3, 0, 0}));
  for (const Kernel& kernel : head.forward) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (collective != nullptr) {
      EXPECT_EQ(collective->bytes, 4.0 * 32);
    }
  }
  EXPECT_EQ(collectives(head.backward_input), (Count{1, 0, 0}));
}

TEST(Collectives, OfTheEmbeddingSumTheRanksFinds) {
  const Work reduced = make_work(case_of(4, false).model, case_of(4, false).plan);
  EXPECT_EQ(collectives(block_called(reduced, "embedding").forward), (Count{1, 0, 0}));
  const Work scattered = make_work(case_of(4, true).model, case_of(4, true).plan);
  EXPECT_EQ(collectives(block_called(scattered, "embedding").forward), (Count{0, 0, 1}));
  EXPECT_EQ(collectives(block_called(scattered, "embedding").backward_input), (Count{0, 1, 0}));
}

TEST(Collectives, OfFullRecomputeAreThoseOfTheForward) {
  Case c = case_of(4, true);
  c.plan.recompute = Recompute::full;
  const Work work = make_work(c.model, c.plan);
  EXPECT_EQ(collectives(block_called(work, "layer").recompute), (Count{0, 2, 2}));
}

RC_GTEST_PROP(Collectives, NeedMoreThanOneTensorParallelRank, ()) {
  Case c = any_case();
  c.plan.tp = 1;
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    for (const auto* kernels :
         {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight}) {
      RC_ASSERT(collectives(*kernels) == Count{});
    }
  }
}

RC_GTEST_PROP(Collectives, CountTheWholeBufferAndSplitItOverTheRanks, ()) {
  const Case c = any_case();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight}) {
      for (const Kernel& kernel : *kernels) {
        const auto* collective = std::get_if<Collective>(&kernel.what);
        if (collective == nullptr) continue;
        const double read_share = collective->op == CollectiveOp::all_gather ? c.plan.tp : 1;
        const double write_share = collective->op == CollectiveOp::reduce_scatter ? c.plan.tp : 1;
        RC_ASSERT(collective->group == CommGroup::tensor);
        RC_ASSERT(block.bytes(kernel.reads) * read_share == collective->bytes);
        RC_ASSERT(block.bytes(kernel.writes) * write_share == collective->bytes);
      }
    }
  }
}

}  // namespace
}  // namespace rehearse
