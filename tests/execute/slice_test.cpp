// Slices of all tensor-parallel ranks make up the whole parameter, each element once.
#include "execute/slice.h"

#include <gtest/gtest.h>

#include "cases.h"

namespace rehearse {
namespace {

TEST(Slice, OfAllRanksCoverEveryElementOnceOrAreWholeEverywhere) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 4, 1, 1);
    for (const Block& block : make_work(model, plan).blocks) {
      for (const Tensor& tensor : block.tensors) {
        if (tensor.role != TensorRole::parameter) continue;
        std::vector<int> times;
        for (int rank = 0; rank < plan.tp; ++rank) {
          const Slice slice = slice_of(tensor, rank, plan.tp);
          times.resize(static_cast<std::size_t>(slice.whole_elements()));
          std::int64_t own_elements = 0;
          slice.for_each([&](std::int64_t own, std::int64_t whole) {
            EXPECT_EQ(own, own_elements++);
            ++times[static_cast<std::size_t>(whole)];
          });
          EXPECT_EQ(own_elements, static_cast<std::int64_t>(tensor.elements)) << tensor.name;
        }
        const bool whole = static_cast<double>(times.size()) == tensor.elements;
        for (const int count : times) ASSERT_EQ(count, whole ? plan.tp : 1) << tensor.name;
      }
    }
  }
}

TEST(Slice, OfExpertsOverTheirRanksCoverEveryElementOnce) {
  for (const bool gated : {false, true}) {
    Model model = tiny_shared_experts();
    model.gated_mlp = gated;
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 1, 4);
    plan.sequence_parallel = true;
    plan.ep = plan.etp = 2;
    const RankGrid grid = RankGrid::of_experts(plan);
    for (const Block& block : make_work(model, plan).blocks) {
      for (const Tensor& tensor : block.tensors) {
        if (!tensor.of_experts) continue;
        std::vector<int> times;
        for (int rank = 0; rank < plan.gpus(); ++rank) {
          const Slice slice = expert_slice_of(tensor, model, plan, grid.coordinates(rank));
          times.resize(static_cast<std::size_t>(slice.whole_elements()));
          std::int64_t own_elements = 0;
          slice.for_each([&](std::int64_t own, std::int64_t whole) {
            EXPECT_EQ(own, own_elements++);
            ++times[static_cast<std::size_t>(whole)];
          });
          EXPECT_EQ(own_elements, static_cast<std::int64_t>(tensor.elements)) << tensor.name;
        }
        EXPECT_EQ(static_cast<double>(times.size()), 4 * tensor.elements) << tensor.name;
        for (const int count : times) ASSERT_EQ(count, plan.edp()) << tensor.name;
      }
    }
  }
}

// A shard begins and ends anywhere.
TEST(Slice, StretchesNumberTheSameElements) {
  const std::vector<Slice> slices = {
      {{{2, 3}, {7, 2}}, 0, 5, 9, 5}, {{{2, 3}, {7, 2}}, 4, 5, 9, 13}, {{{0, 1}}, 0, 7, 1, 7}};
  for (const Slice& slice : slices) {
    std::vector<std::int64_t> numbers;
    slice.for_each([&](std::int64_t /*own*/, std::int64_t whole) { numbers.push_back(whole); });
    const auto count = static_cast<std::int64_t>(numbers.size());
    for (std::int64_t first = 0; first <= count; ++first) {
      for (std::int64_t last = first; last <= count; ++last) {
        std::int64_t next = first;
        for (const Slice::Stretch& stretch : slice.stretches(first, last)) {
          ASSERT_EQ(stretch.first, next);
          for (std::int64_t i = 0; i < stretch.count; ++i)
            ASSERT_EQ(stretch.whole.number(i), numbers[static_cast<std::size_t>(next++)]);
        }
        ASSERT_EQ(next, last);
      }
    }
  }
}

}  // namespace
}  // namespace rehearse
