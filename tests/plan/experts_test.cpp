#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "model/read.h"
#include "work_case.h"

namespace rehearse {
namespace {

double collective_bytes(const std::vector<Kernel>& kernels, CollectiveOp op, Axis axis) {
  double bytes = 0;
  for (const Kernel& kernel : kernels) {
    const auto* c = std::get_if<Collective>(&kernel.what);
    if (c != nullptr && c->op == op && axis_of(c->group) == axis) bytes += c->bytes * double(c->calls);
  }
  return bytes;
}

Case preset(const std::string& name, int ep) {
  Case c{read_model(name), {}};
  c.plan.seq = 4096;
  c.plan.ep = c.plan.dp = ep;
  return c;
}

// Parameters that multiply an activation, each in two FLOPs a token and pass.
double multiplying(const Model& m) {
  const ParameterCount count = count_parameters(m);
  const double biases = m.experts->router_bias ? double(m.experts->count * count.sparse_layers) : 0;
  return double(count.active - count.embedding - m.layers * count.norms - count.final_norm) - biases;
}

TEST(ExpertFlops, OfMixtralAreSixTimesTheActiveParametersAndTheScores) {
  const Case c = preset("mixtral-8x7b", 8);
  const double attention = 12.0 * 4096 * 4096 * 32;  // three passes of 4 s h a layer
  const double a_token = count_flops(make_work(c.model, c.plan), c.plan).model() / 4096;
  EXPECT_DOUBLE_EQ(a_token, 6 * multiplying(c.model) + attention);
  EXPECT_NEAR(multiplying(c.model), 12.9e9, 0.02 * 12.9e9);  // 12.9 B: Jiang et al. 2024, section 1
}

TEST(ExpertFlops, OfDeepSeekV3AreSixTimesTheActiveParametersAndTheScores) {
  Case c = preset("deepseek-v3", 64);
  c.model.mtp_layers = 0;
  const double attention = 6.0 * 4096 * 128 * (192 + 128) * 61;
  const double a_token = count_flops(make_work(c.model, c.plan), c.plan).model() / 4096;
  EXPECT_DOUBLE_EQ(a_token, 6 * multiplying(c.model) + attention);
  EXPECT_NEAR(multiplying(c.model), 37e9, 0.03 * 37e9);  // 37 B: DeepSeek-V3, section 1
}

TEST(ExpertRows, VaryUnlessTheyArePaddedToACapacity) {
  Case c = preset("mixtral-8x7b", 8);
  const auto kind = [&c] {
    const Block layer = block_called(make_work(c.model, c.plan), "sparse_layer");
    for (const Kernel& kernel : layer.forward)
      if (kernel.name == "experts_activation") return std::get<Pointwise>(kernel.what);
    return Pointwise::add;
  };
  EXPECT_EQ(kind(), Pointwise::varying_activation);
  c.plan.moe_capacity = 1;
  EXPECT_EQ(kind(), Pointwise::activation);
}

RC_GTEST_PROP(ExpertFlops, DoNotDependOnTheSplitOverRanks, ()) {
  Case c = any_split(true);
  if (c.plan.seq % (2 * c.plan.tp * c.plan.cp) != 0)
    c.plan.seq = c.model.max_positions = 64 * c.plan.tp * c.plan.cp;
  Plan alone;
  alone.seq = c.plan.seq;
  alone.micro_batch = c.plan.micro_batch;
  alone.fused_attention = c.plan.fused_attention;  // else scores outside a window are multiplied too
  const double whole = count_flops(make_work(c.model, alone), alone).model();
  RC_ASSERT(std::abs(count_flops(make_work(c.model, c.plan), c.plan).model() - whole) < 1e-12 * whole);
}

RC_GTEST_PROP(ExpertFlops, OfTheModelLeaveOutImbalance, ()) {
  Case c{llama(2, 64, 8, 8, 128, 256), {}};
  c.model.experts = Experts{8, 2, 32};
  c.plan.ep = c.plan.dp = 4;
  c.plan.seq = 128;
  const double even = count_flops(make_work(c.model, c.plan), c.plan).model();
  c.plan.moe_imbalance = *rc::gen::element(1.25, 1.5, 2.0);
  RC_ASSERT(std::abs(count_flops(make_work(c.model, c.plan), c.plan).model() - even) < 1e-9 * even);
}

RC_GTEST_PROP(ExpertParameters, OfAllRanksAreTheModels, ()) {
  Case c = any_case();
  c.plan.tp = 1;
  add_experts(c, false);
  c.model.experts->linear_bias &= c.plan.etp == 1;  // else each of the ranks holds all of the last bias
  c.model.tied_embeddings = false;
  const Work work = make_work(c.model, c.plan);
  double sum = 0;
  for (int stage = 0; stage < c.plan.stages(); ++stage) {
    const double experts = work.expert_parameters(stage);
    sum += work.parameters(stage) - experts + c.plan.ep * c.plan.etp * experts;
  }
  const ParameterCount count = count_parameters(c.model);
  const bool copies_table = c.model.mtp_layers > 0 && pipeline_rank_of(c.plan.stages() - 1, c.plan) > 0;
  RC_ASSERT(sum == double(count.total + (copies_table ? count.embedding : 0)));
}

TEST(ExpertParameters, OfOneRankOfDeepSeekV3AreAFewOfEveryLayersExperts) {
  const Case c = preset("deepseek-v3", 64);
  const Work work = make_work(c.model, c.plan);
  const double sparse_layers = 58, and_of_the_module = 1;
  EXPECT_EQ(work.expert_parameters(0), (sparse_layers + and_of_the_module) * 4 * 3 * 7168 * 2048);
  EXPECT_EQ(block_called(work, "layer").expert_parameters(), 0);
}

TEST(ExpertBytes, OfDispatchAndCombineAreTokensTimesChoicesTimesHidden) {
  const Case c = preset("mixtral-8x7b", 8);
  const Work work = make_work(c.model, c.plan);
  const Block& layer = block_called(work, "sparse_layer");
  const double rows = 4096.0 * 2, hidden = 4096;
  for (const char* name : {"dispatch", "combine"}) {
    const auto& there = std::get<Collective>(kernel_called(layer.forward, name).what);
    EXPECT_EQ(there.bytes, rows * hidden * 2);
    EXPECT_EQ(there.group, CommGroup::expert);
    const std::string back = std::string(name) + "_backward";
    EXPECT_EQ(std::get<Collective>(kernel_called(layer.backward_input, back).what).bytes, there.bytes);
  }
  EXPECT_EQ(collective_bytes(layer.forward, CollectiveOp::all_to_all, Axis::ep),
            2 * rows * hidden * 2 + rows * 4);  // and the weight of every row
}

TEST(ExpertBytes, GrowWithImbalanceAndCapacity) {
  Case c = preset("mixtral-8x7b", 8);
  const auto dispatched = [&c] {
    const Work work = make_work(c.model, c.plan);
    return std::get<Collective>(kernel_called(block_called(work, "sparse_layer").forward, "dispatch").what)
        .bytes;
  };
  const double even = dispatched();
  c.plan.moe_imbalance = 1.5;
  EXPECT_EQ(dispatched(), 1.5 * even);
  c.plan.moe_imbalance = 1;
  c.plan.moe_capacity = 1.25;
  EXPECT_EQ(dispatched(), 1.25 * even);
}

TEST(ExpertBytes, OfExpertTensorParallelismGatherAndScatterWhatTheGroupReceived) {
  Case c = preset("mixtral-8x7b", 4);
  c.plan.etp = 2;
  c.plan.dp = 8;
  const Work work = make_work(c.model, c.plan);
  const Block& layer = block_called(work, "sparse_layer");
  const double received = 4096.0 * 2 * 4096 * 2;
  EXPECT_EQ(std::get<Collective>(kernel_called(layer.forward, "expert_all_gather").what).bytes, 2 * received);
  EXPECT_EQ(std::get<Collective>(kernel_called(layer.forward, "expert_reduce_scatter").what).bytes,
            2 * received);
  EXPECT_EQ(std::get<Gemm>(kernel_called(layer.forward, "experts_down").what).k, 14336 / 2);
}

// One expert that every token visits multiplies as the dense MLP does.
TEST(ExpertKernels, OfASingleExpertAreTheDenseMlp) {
  Model model = llama(1, 256, 4, 4, 512, 1000);
  const Work dense = make_work(model, {});
  model.experts = Experts{1, 1, 512};
  const Work sparse = make_work(model, {});
  const Block& a = block_called(dense, "layer");
  const Block& b = block_called(sparse, "sparse_layer");
  for (const char* which : {"up", "down"}) {
    const auto& x = std::get<Gemm>(kernel_called(a.forward, std::string("mlp_") + which).what);
    const auto& y = std::get<Gemm>(kernel_called(b.forward, std::string("experts_") + which).what);
    EXPECT_EQ(std::tie(x.m, x.n, x.k, x.batch), std::tie(y.m, y.n, y.k, y.batch));
  }
  const auto& router = std::get<Gemm>(kernel_called(b.forward, "router").what);
  EXPECT_EQ(std::tie(router.m, router.n, router.k), std::make_tuple(2048, 1, 256));
}

TEST(ExpertKernels, AddUpRowsInMemoryWhereThePermutationIsNotFused) {
  Case c = preset("mixtral-8x7b", 4);
  const auto kinds = [&c](const std::string& name) {
    const Work work = make_work(c.model, c.plan);
    const Block& layer = block_called(work, "sparse_layer");
    return std::pair(std::get<Pointwise>(kernel_called(layer.forward, name).what),
                     std::get<Pointwise>(kernel_called(layer.backward_input, name + "_backward").what));
  };
  EXPECT_EQ(kinds("permute"), std::pair(Pointwise::permute, Pointwise::unpermute));
  EXPECT_EQ(kinds("unpermute"), std::pair(Pointwise::unpermute, Pointwise::permute));
  c.plan.fused_permute = false;
  EXPECT_EQ(kinds("permute"), std::pair(Pointwise::permute, Pointwise::scatter_add));
  EXPECT_EQ(kinds("unpermute"), std::pair(Pointwise::scatter_add, Pointwise::permute));
  EXPECT_EQ(kinds("sort_by_expert"), std::pair(Pointwise::rows_by_expert, Pointwise::rows_by_source));
}

// Megatron core's Fp8Padding; HybridEP pads as it permutes, and a capacity is a multiple as a rule.
TEST(ExpertKernels, AlignRowsThatHappenToComeForProductsInFp8) {
  Case c = preset("mixtral-8x7b", 4);
  const auto aligned = [&c] {
    const Work work = make_work(c.model, c.plan);
    std::vector<std::string> names;
    for (const Kernel& kernel : block_called(work, "sparse_layer").forward)
      if (kernel.name.ends_with("pad_rows")) names.push_back(kernel.name);
    return names;
  };
  EXPECT_THAT(aligned(), ::testing::IsEmpty());
  c.plan.precision = Precision::fp8;
  EXPECT_THAT(aligned(), ::testing::ElementsAre("pad_rows", "unpad_rows"));
  c.plan.moe_capacity = 1;
  EXPECT_THAT(aligned(), ::testing::IsEmpty());
  c.plan.moe_capacity = 0;
  c.plan.dispatcher = Dispatcher::hybridep;
  EXPECT_THAT(aligned(), ::testing::IsEmpty());
}

TEST(ExpertBlocks, FollowTheOrderOfDenseAndSparseLayers) {
  Model model = llama(6, 64, 8, 8, 128, 256);
  model.experts = Experts{4, 2, 32, 0, 3};
  Plan plan;
  plan.pp = 2;
  const Work work = make_work(model, plan);
  const auto repeats = [&](std::size_t stage) {
    std::vector<std::pair<std::string, std::int64_t>> list;
    for (const Repeated& part : work.parts[stage])
      list.emplace_back(work.blocks[std::size_t(part.block)].name, part.repeats);
    return list;
  };
  using List = std::vector<std::pair<std::string, std::int64_t>>;
  EXPECT_EQ(repeats(0), (List{{"embedding", 1}, {"layer", 3}}));
  EXPECT_EQ(repeats(1), (List{{"sparse_layer", 3}, {"head", 1}}));
}

// Attention part 8h + 8 kv + 4 a + 4 h of a dense layer, scores 2E, choices 4k. For each chosen row: its
// input 2h, weight 4, gate and up 4f and their product 2f.
TEST(ExpertSavedBytes, OfAMixtralLayerAreThoseOfItsChosenRows) {
  const Case c = preset("mixtral-8x7b", 8);
  const double h = 4096, f = 14336, kv = 1024, heads = 32, s = 4096;
  const double expected = 12 * h + 4 * kv + 4 * heads + 2 * 8 + 4 * 2 + 2 * (2 * h + 4 + 6 * f);
  EXPECT_EQ(saved_bytes(block_called(make_work(c.model, c.plan), "sparse_layer")), s * expected);
}

// Rows of hidden before and after two norms; latents before and after theirs; queries and keys of 192, values
// and output of 128, log-sum-exp; the dense MLP.
TEST(LatentSavedBytes, OfADenseDeepSeekLayerAreItsLatentsAndHeads) {
  const Case c = preset("deepseek-v3", 1);
  const double h = 7168, q = 1536, kv = 512, a = 128, f = 18432, s = 4096;
  const double expected = 8 * h + 4 * q + 4 * kv + 2 * a * (2 * 192 + 2 * 128) + 4 * a + 6 * f;
  EXPECT_EQ(saved_bytes(block_called(make_work(c.model, c.plan), "layer")), s * expected);
}

TEST(LatentParameters, SplitHeadsAndKeepDownProjectionsWhole) {
  Case c = preset("deepseek-v3", 1);
  c.model.experts.reset();
  const double whole = block_called(make_work(c.model, c.plan), "layer").parameters();
  c.plan.tp = 8;
  c.plan.sequence_parallel = true;
  const double split = block_called(make_work(c.model, c.plan), "layer").parameters();
  const double replicated = 7168.0 * (1536 + 512 + 64) + 1536 + 512 + 2 * 7168;
  EXPECT_EQ(8 * split, whole + 7 * replicated);
}

}  // namespace
}  // namespace rehearse
