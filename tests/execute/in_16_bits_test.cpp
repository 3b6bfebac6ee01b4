// Common to bf16 and fp16: context, experts, shards, dropout and recompute train as on one rank.
#include <gtest/gtest.h>

#include "same_mixed_training.h"

namespace rehearse {
namespace {

class In16Bits : public testing::TestWithParam<Precision> {
 protected:
  static Plan plan(int tp, int pp, int dp, Recipe recipe = Recipe::megatron) {
    return in_16_bits(plan_of(ScheduleName::one_f_one_b, tp, pp, dp), GetParam(), recipe);
  }
};

INSTANTIATE_TEST_SUITE_P(Both, In16Bits, testing::Values(Precision::bf16, Precision::fp16),
                         [](const auto& precision) { return to_string(precision.param); });

TEST_P(In16Bits, ContextIsSplit) {
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all}) {
    SCOPED_TRACE(to_string(exchange));
    Plan split = plan(1, 2, 1);
    split.cp = 2;
    split.cp_exchange = exchange;
    split.micro_batch = 2;
    expect_same_training_in_16_bits(tiny_llama(), split);
  }
}

TEST_P(In16Bits, ShardsOfGroupsAreSummed) {
  for (const Precision wire : {Precision::fp32, GetParam()}) {
    Plan sharded = plan(1, 1, 4, Recipe::fsdp);
    sharded.framework = Framework::fsdp;
    sharded.zero = 3;
    sharded.zero_shard = 2;
    sharded.grad_reduce = wire;
    expect_same_training_in_16_bits(tiny_gpt(), sharded);
  }
}

// Scans sum gradients of their parameters in fp32; the rotary key's part of a GEMM is summed over ranks.
TEST_P(In16Bits, StateSpacesAndLatentAttentionAreSplit) {
  for (const Model& model : {tiny_hybrid(), tiny_latent()}) {
    SCOPED_TRACE(model.name);
    Plan tensors = plan(2, 2, 1), contexts = plan(1, 1, 2);
    contexts.cp = 2;
    contexts.zero = 1;
    expect_same_training_in_16_bits(model, tensors);
    tensors.sequence_parallel = true;
    expect_same_training_in_16_bits(model, tensors);
    expect_same_training_in_16_bits(model, contexts);
  }
}

// Rows travel in 16 bits, the router's weights and their gradients in fp32.
TEST_P(In16Bits, ExpertsAreSplit) {
  for (const int zero : {0, 1}) {
    Plan parallel = plan(1, 1, 4);
    parallel.ep = 2;
    parallel.zero = zero;
    expect_same_training_in_16_bits(tiny_mixtral(), parallel);
  }
  Plan inside = plan(2, 2, 1);
  inside.sequence_parallel = true;
  inside.etp = 2;
  expect_same_training_in_16_bits(tiny_mixtral(), inside);
}

TEST_P(In16Bits, DropoutDrawsTheSame) {
  Model model = tiny_gpt();
  model.dropout = true;
  expect_same_training_in_16_bits(model, plan(2, 2, 1));
}

TEST_P(In16Bits, OneKernelForEachOperation) {
  Plan unfused = plan(2, 1, 1);
  unfused.fused_cross_entropy = unfused.fused_attention = false;
  for (const Model& model : {tiny_gpt(), tiny_llama()}) expect_same_training_in_16_bits(model, unfused);
}

// Recompute from the same 16-bit values gives the same bits.
TEST_P(In16Bits, RecomputeChangesNothing) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    Plan rerun = in_16_bits(plan_of(ScheduleName::zb_h1, 2, 2, 1), GetParam());
    RankPool kept(in_16_bits(model, rerun), {10, {}});
    const double loss = kept.step().loss;
    for (const Recompute recompute : {Recompute::full, Recompute::selective}) {
      rerun.recompute = recompute;
      RankPool again(in_16_bits(model, rerun), {10, {}});
      EXPECT_EQ(again.step().loss, loss);
      std::string where;
      EXPECT_EQ(largest_error(again.gradients(), kept.gradients(), where), 0) << where;
    }
  }
}

}  // namespace
}  // namespace rehearse
