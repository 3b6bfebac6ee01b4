// Parts that only single families have. The Work has as many parameters as the model's count, and runs their
// kernels.
#include <gtest/gtest.h>

#include "model/read.h"
#include "work_case.h"

namespace rehearse {
namespace {

Model small() {
  Model model = llama(4, 256, 8, 4, 512, 1024);
  model.max_positions = 128;
  return model;
}

double held(const Model& model) {
  Case c{model, {}};
  c.plan.seq = 128;
  return make_work(c.model, c.plan).parameters(0);
}

void expect_counted(const Model& model) {
  EXPECT_EQ(held(model), double(count_parameters(model).total));
}

std::int64_t norms_of_layer(const Model& model) {
  Case c{model, {}};
  c.plan.seq = 128;
  std::int64_t norms = 0;
  for (const Kernel& kernel : block_called(make_work(c.model, c.plan), "layer").forward)
    if (const auto* what = std::get_if<Pointwise>(&kernel.what)) norms += stream_of(*what) == Pointwise::norm;
  return norms;
}

TEST(ModelParts, NormsStandWhereTheFamilyHasThem) {
  for (const auto& [place, norms] : {std::pair{NormPlace::before, 2},
                                     {NormPlace::after, 2},
                                     {NormPlace::both, 4},
                                     {NormPlace::shared, 1}}) {
    Model model = small();
    model.norm_place = place;
    model.parallel_residual = place == NormPlace::shared;
    EXPECT_EQ(norms_of_layer(model), norms);
    expect_counted(model);
  }
}

const Kernel* find_kernel(const Block& block, const std::string& name) {
  const auto found = std::ranges::find(block.forward, name, &Kernel::name);
  return found == block.forward.end() ? nullptr : &*found;
}

TEST(ModelParts, LayersMayLackRotaryPositions) {
  Model model = small();
  model.rotary = "1110";
  model.qk_norm = model.qk_norm_plain = true;
  expect_counted(model);
  Case c{model, {}};
  c.plan.seq = 128;
  const Work work = make_work(c.model, c.plan);
  for (const char* name : {"rotary", "query_norm"}) {
    EXPECT_NE(find_kernel(block_called(work, "layer"), name), nullptr) << name;
    EXPECT_EQ(find_kernel(block_called(work, "unrotated_layer"), name), nullptr) << name;
  }
}

TEST(ModelParts, ScoresAndLogitsMayBeCapped) {
  Model model = small();
  model.caps_scores = model.caps_logits = true;
  expect_counted(model);
  Case c{model, {}};
  c.plan.seq = 128;
  const Work work = make_work(c.model, c.plan);
  EXPECT_TRUE(kernel_called(block_called(work, "layer").forward, "attention").unmeasured);
  EXPECT_FALSE(kernel_called(block_called(work, "layer").forward, "projection").unmeasured);
  for (const char* name : {"logits_scaled", "logits_tanh", "logits_capped"})
    EXPECT_NE(find_kernel(block_called(work, "head"), name), nullptr) << name;
}

TEST(ModelParts, EncodersSeeAllTokens) {
  Model model = small();
  model.norm_place = NormPlace::after_sum;
  model.bidirectional = model.head_transform = model.embedding_norm = true;
  model.token_types = 2;
  expect_counted(model);
  EXPECT_EQ(norms_of_layer(model), 2);
  Case c{model, {}};
  c.plan.seq = 128;
  const Work work = make_work(c.model, c.plan);
  EXPECT_FALSE(
      std::get<Attention>(kernel_called(block_called(work, "layer").forward, "attention").what).causal);
  EXPECT_EQ(std::ranges::count(block_called(work, "head").forward, std::string("final_norm"), &Kernel::name),
            0);
}

TEST(ModelParts, NormsMayLackParameters) {
  for (const Norm norm : {Norm::layer, Norm::layer_weight, Norm::layer_plain}) {
    Model model = small();
    model.norm = norm;
    expect_counted(model);
  }
}

TEST(ModelParts, NormsOfQueriesAndKeysMayHaveWeightsForEveryHead) {
  for (const QkNormSpan span : {QkNormSpan::each_head, QkNormSpan::all_heads}) {
    Model model = small();
    model.qk_norm = true;
    const double shared = held(model);
    model.qk_norm_span = span;
    expect_counted(model);
    EXPECT_EQ(held(model) - shared, 4 * (12 - 2) * 32);
  }
}

TEST(ModelParts, EndsMayHaveMoreThanATable) {
  Model model = small();
  model.head_bias = model.embedding_norm = true;
  model.positions = Positions::learned;
  model.position_offset = 2;
  expect_counted(model);
}

TEST(ModelParts, SharedExpertsMayHaveAGate) {
  Model model = small();
  model.experts = Experts{.count = 4, .per_token = 2, .ffn_hidden = 64, .shared_ffn_hidden = 100};
  const double plain = held(model);
  model.experts->shared_gate = true;
  expect_counted(model);
  EXPECT_EQ(held(model) - plain, 4 * 256);
}

TEST(ModelParts, LayersWithExpertsMayBeAnyOnes) {
  Model model = small();
  model.experts = Experts{.count = 4, .per_token = 2, .ffn_hidden = 64};
  model.experts->layers = "1001";
  EXPECT_TRUE(model.is_sparse(0) && !model.is_sparse(1) && !model.is_sparse(2) && model.is_sparse(3));
  expect_counted(model);
}

}  // namespace
}  // namespace rehearse
