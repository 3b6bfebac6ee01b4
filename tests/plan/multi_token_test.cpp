// MTP layers: their compute, memory, and tensors shared with the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/read.h"
#include "work_case.h"

namespace rehearse {
namespace {

Case deepseek(std::int64_t modules, int pp) {
  Case c{read_model("deepseek-v3"), {}};
  c.model.mtp_layers = modules;
  c.plan.seq = 4096;
  c.plan.pp = pp;
  if (pp == 4) c.plan.layers_per_stage = {16, 16, 16, 13};
  return c;
}

TEST(MultiToken, ModuleHoldsWhatTheModelCountsAndACopyOfTheTableWhereTheEmbeddingIsElsewhere) {
  const ParameterCount count = count_parameters(deepseek(1, 1).model);
  EXPECT_EQ(parameters_on_all_stages(deepseek(1, 1)) - parameters_on_all_stages(deepseek(0, 1)),
            double(count.mtp));
  EXPECT_EQ(parameters_on_all_stages(deepseek(2, 1)) - parameters_on_all_stages(deepseek(0, 1)),
            2 * double(count.mtp));
  EXPECT_EQ(parameters_on_all_stages(deepseek(1, 4)) - parameters_on_all_stages(deepseek(0, 4)),
            double(count.mtp + count.embedding));
}

TEST(MultiToken, ModuleComputesALayerTheHeadAndItsProjection) {
  const Case c = deepseek(1, 1);
  const auto forward = [&](std::int64_t modules) {
    const Case with = deepseek(modules, 1);
    return count_flops(make_work(with.model, with.plan), with.plan).forward;
  };
  const Work work = make_work(c.model, c.plan);
  const auto of = [&](const char* block) {
    double sum = 0;
    for (const Kernel& kernel : block_called(work, block).forward) sum += flops(kernel);
    return sum;
  };
  const double projection = 2.0 * 4096 * 7168 * 2 * 7168;
  EXPECT_DOUBLE_EQ(forward(1) - forward(0), of("sparse_layer") + of("head") + projection);
}

TEST(MultiToken, LastStageRunsTheModuleBetweenItsLayersAndTheHead) {
  const Case c = deepseek(1, 4);
  const Work work = make_work(c.model, c.plan);
  std::vector<std::string> names;
  for (const Repeated& part : work.parts.back())
    names.push_back(work.blocks[static_cast<std::size_t>(part.block)].name);
  EXPECT_THAT(names, testing::ElementsAre("sparse_layer", "mtp", "head"));
  for (std::size_t stage = 0; stage + 1 < work.parts.size(); ++stage)
    for (const Repeated& part : work.parts[stage])
      EXPECT_NE(work.blocks[static_cast<std::size_t>(part.block)].name, "mtp");
}

TEST(MultiToken, HandsOnWhatItReads) {
  const Case c = deepseek(1, 1);
  const Block block = block_called(make_work(c.model, c.plan), "mtp");
  EXPECT_EQ(block.output, block.input);
  EXPECT_NE(block.input_gradient, block.output_gradient);
}

TEST(MultiToken, SharesTheHeadAndTheTableWhereTheyAreHere) {
  for (const bool tied : {false, true}) {
    for (const int pp : {1, 4}) {
      Case c = deepseek(1, pp);
      c.model.tied_embeddings = tied;
      const Block block = block_called(make_work(c.model, c.plan), "mtp");
      std::vector<std::string> shared;
      for (const Tensor& tensor : block.tensors)
        if (tensor.role == TensorRole::tied) shared.push_back(tensor.name);
      const bool holds_a_copy = !tied && pp > 1;
      if (holds_a_copy)
        EXPECT_THAT(shared, testing::ElementsAre("head_weight"));
      else
        EXPECT_THAT(shared, testing::ElementsAre("word_table", "head_weight"));
    }
  }
}

TEST(MultiToken, MultipliesIn16BitsWhereOtherLayersDoInFp4) {
  Case c = deepseek(1, 1);
  c.plan.precision = Precision::fp4;
  c.plan.fp8_either_layout = true;
  c.plan.recipe = Recipe::zero;
  const Work work = make_work(c.model, c.plan);
  const auto quantizes = [&](const char* block) {
    return std::ranges::any_of(block_called(work, block).forward, [](const Kernel& kernel) {
      const auto* pointwise = std::get_if<Pointwise>(&kernel.what);
      return pointwise != nullptr && stream_of(*pointwise) == Pointwise::quantize_fp4;
    });
  };
  EXPECT_TRUE(quantizes("sparse_layer"));
  EXPECT_FALSE(quantizes("mtp"));
}

TEST(MultiToken, FullRecomputeRunsAModuleAgainWhereItIsUniform) {
  Case c = deepseek(1, 1);
  c.plan.recompute = Recompute::full;
  const auto reruns = [&] {
    const Block block = block_called(make_work(c.model, c.plan), "mtp");
    return std::ranges::any_of(block.recompute,
                               [](const Kernel& k) { return k.name == "joined_projection"; });
  };
  EXPECT_TRUE(reruns());
  c.plan.recompute_method = RecomputeMethod::block;
  EXPECT_FALSE(reruns());
}

TEST(MultiToken, IsMegatronCores) {
  Case c = deepseek(1, 1);
  c.plan.framework = Framework::fsdp;
  std::vector<std::string> fields;
  for (const Violation& violation : broken_rules(c.plan, c.model, 1)) fields.push_back(violation.pointer);
  EXPECT_THAT(fields, testing::Contains("mtp_num_layers"));
  c.model.mtp_layers = 0;
  for (const Violation& violation : broken_rules(c.plan, c.model, 1))
    EXPECT_NE(violation.pointer, "mtp_num_layers");
}

}  // namespace
}  // namespace rehearse
