// Properties of the parameter count of any network.
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "model/bounds.h"
#include "model/model.h"

namespace rehearse {
namespace {

std::int64_t pick(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange(least, most + 1);
}

Experts any_experts() {
  Experts experts;
  experts.count = pick(1, 256);
  experts.per_token = pick(1, experts.count);
  experts.ffn_hidden = pick(1, 8192);
  experts.shared_ffn_hidden = pick(0, 8192);
  experts.first_layer = pick(0, 8);
  experts.every = pick(1, 4);
  experts.router_bias = *rc::gen::arbitrary<bool>();
  return experts;
}

Model any_model() {
  Model model;
  model.layers = pick(1, 200);
  model.kv_heads = pick(1, 16);
  model.heads = model.kv_heads * pick(1, 16);
  model.head_dim = pick(1, 256);
  model.hidden = pick(1, 32768);
  model.ffn_hidden = pick(1, 131072);
  model.vocab = pick(1, 300000);
  model.max_positions = pick(1, 200000);
  model.norm = *rc::gen::element(Norm::layer, Norm::rms);
  model.positions = *rc::gen::element(Positions::rotary, Positions::learned);
  model.gated_mlp = *rc::gen::arbitrary<bool>();
  model.qkv_bias = *rc::gen::arbitrary<bool>();
  model.attention_out_bias = *rc::gen::arbitrary<bool>();
  model.mlp_bias = *rc::gen::arbitrary<bool>();
  model.qk_norm = *rc::gen::arbitrary<bool>();
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  model.attention_sinks = *rc::gen::arbitrary<bool>();
  model.mtp_layers = *rc::gen::inRange<std::int64_t>(0, 3);
  if (*rc::gen::arbitrary<bool>()) model.experts = any_experts();
  if (*rc::gen::arbitrary<bool>()) {
    model.latent = LatentAttention{pick(0, 4096), pick(1, 1024), pick(1, 256), pick(1, 128), pick(1, 256)};
  }
  return model;
}

RC_GTEST_PROP(Count, TotalIsTheSumOfItsParts, ()) {
  const Model model = any_model();
  require_valid(model, "");
  const ParameterCount count = count_parameters(model);
  RC_ASSERT(count.dense_layers + count.sparse_layers == model.layers);
  RC_ASSERT(count.total == count.embedding + count.positions + count.final_norm + count.head +
                               model.layers * (count.attention + count.norms) +
                               count.dense_layers * count.mlp + count.sparse_layers * count.experts +
                               model.mtp_layers * count.mtp);
}

RC_GTEST_PROP(Count, AModuleOfMultiTokenPredictionIsALayerLikeTheLastAndAProjection, ()) {
  Model model = any_model();
  model.mtp_layers = 1;
  const ParameterCount count = count_parameters(model);
  const bool sparse = model.is_sparse(model.layers - 1);
  RC_ASSERT(count.mtp == count.attention + count.norms + (sparse ? count.experts : count.mlp) +
                             3 * count.final_norm + 2 * model.hidden * model.hidden);
}

RC_GTEST_PROP(Count, LinearBiasesOfExpertsAreOneForEachOfTheirOutputs, ()) {
  Model model = any_model();
  if (!model.experts) model.experts = any_experts();
  const std::int64_t without = count_parameters(model).experts;
  model.experts->linear_bias = !model.experts->linear_bias;
  const Experts& experts = *model.experts;
  const std::int64_t outputs = (model.gated_mlp ? 2 : 1) * experts.ffn_hidden + model.hidden;
  RC_ASSERT(std::abs(count_parameters(model).experts - without) == experts.count * (outputs + 1));
}

RC_GTEST_PROP(Count, ActiveIsAtMostTotalAndEqualWhereATokenVisitsEveryExpert, ()) {
  Model model = any_model();
  const ParameterCount count = count_parameters(model);
  RC_ASSERT(count.active > 0);
  RC_ASSERT(count.active <= count.total);
  if (model.experts) model.experts->per_token = model.experts->count;
  const ParameterCount all_visited = count_parameters(model);
  RC_ASSERT(all_visited.active == all_visited.total);
}

RC_GTEST_PROP(Count, GrowsByOneLayerWithEachDenseLayer, ()) {
  Model model = any_model();
  model.experts.reset();
  const ParameterCount before = count_parameters(model);
  ++model.layers;
  const ParameterCount after = count_parameters(model);
  RC_ASSERT(after.total - before.total == before.attention + before.mlp + before.norms);
}

RC_GTEST_PROP(Count, TyingSavesExactlyTheTable, ()) {
  Model model = any_model();
  model.tied_embeddings = false;
  const std::int64_t untied = count_parameters(model).total;
  model.tied_embeddings = true;
  RC_ASSERT(untied - count_parameters(model).total == model.vocab * model.hidden);
}

RC_GTEST_PROP(Count, SparseLayersAreThoseThatIsSparseNames, ()) {
  const Model model = any_model();
  std::int64_t sparse = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) sparse += model.is_sparse(layer) ? 1 : 0;
  RC_ASSERT(count_parameters(model).sparse_layers == sparse);
}

TEST(Count, LargestLegalNetworkDoesNotOverflow) {
  Model model;
  model.layers = bounds::kLayers;
  model.hidden = bounds::kHidden;
  model.heads = model.kv_heads = bounds::kHeads;
  model.head_dim = bounds::kHeadDim;
  model.ffn_hidden = bounds::kFfnHidden;
  model.vocab = bounds::kVocab;
  model.max_positions = bounds::kPositions;
  model.positions = Positions::learned;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = model.qk_norm = true;
  model.experts = Experts{bounds::kExperts, 1, bounds::kExpertFfnHidden, bounds::kFfnHidden, 0, 1, true};
  const auto in_floating_point = [&] {
    const long double experts = 3.0L * bounds::kHidden * bounds::kExpertFfnHidden * bounds::kExperts;
    return bounds::kLayers * experts;
  };
  for (const bool latent : {false, true}) {
    if (latent) {
      model.latent = LatentAttention{bounds::kLatentRank, bounds::kLatentRank, bounds::kHeadDim,
                                     bounds::kHeadDim, bounds::kHeadDim};
    }
    require_valid(model, "");
    const ParameterCount count = count_parameters(model);
    EXPECT_GT(static_cast<long double>(count.total), in_floating_point());
    EXPECT_LT(static_cast<long double>(count.total), 1.5L * in_floating_point());
    EXPECT_GT(count.active, 0);
  }
}

TEST(Valid, EveryBrokenRuleIsNamedAtOnce) {
  Model model;
  try {
    require_valid(model, "mine.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.violations().size(), 7U);
    EXPECT_EQ(error.violations().front().file, "mine.json");
  }
}

}  // namespace
}  // namespace rehearse
