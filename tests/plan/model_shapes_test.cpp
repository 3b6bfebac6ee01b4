// Models whose layers differ in size, and mechanisms beside attention. The Work has as many parameters as the
// model's count, over any number of tensor-parallel ranks, and runs their kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/read.h"
#include "plan/rules/rules.h"
#include "scratch.h"
#include "work_case.h"

namespace rehearse {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kShapeTokens = 256;

Model plain() {
  return llama(4, 256, 8, 4, 512, 1024);
}

Work work_over(const Model& model, int tp = 1) {
  Case c{model, {}};
  c.plan.seq = kShapeTokens;
  c.plan.tp = tp;
  return make_work(c.model, c.plan);
}

double counted(const Model& model) {
  return double(count_parameters(model).total);
}

// Layers 1 and 3 have other heads; layer 2 another MLP, too.
Model of_shapes() {
  Model model = plain();
  LayerShape heads = model.own_shape(), width = model.own_shape();
  heads.heads = 16;
  heads.kv_heads = 2;
  heads.v_head_dim = 16;
  heads.attention_sinks = true;
  width.ffn_hidden = 1024;
  width.values_are_keys = true;
  model.shapes = {heads, width};
  model.shape_of_layer = {0, 1, 2, 1};
  model.value_norm = true;
  return model;
}

Model of_compressed_keys() {
  Model model = plain();
  model.kv_heads = 1;
  model.attention_sinks = true;
  model.window = 32;
  model.compressed = CompressedAttention{64, 4, 16, 4, 4, 16, 8};
  model.experts = Experts{8, 2, 64, 64};
  model.experts->router_bias = true;
  model.streams = 4;
  LayerShape sparse = model.own_shape(), heavy = model.own_shape();
  sparse.compression = 4;
  heavy.compression = 32;
  heavy.hashes_experts = true;
  model.shapes = {sparse, heavy};
  model.shape_of_layer = {0, 2, 1, 2};
  return model;
}

Model of_blocks_of_keys() {
  Model model = plain();
  model.indexer = Indexer{4, 32, 64, "0111", 16};
  return model;
}

Model of_state_spaces() {
  Model model = plain();
  model.mamba_beside_attention = true;
  model.state_space = StateSpace{8, 32, 2, 16, 4, 64, false};
  return model;
}

Model of_kimi(bool full_rank) {
  Model model = plain();
  model.kv_heads = model.heads;
  model.latent = LatentAttention{0, 32, 32, 16, 32};
  model.attention_gate = true;
  model.head_dim = 48;
  model.recurrence = Recurrence{RecurrenceKind::kimi_delta, 8, 8, 32, 32, 4, 64, 0, false, full_rank};
  model.recurrent = "1101";
  model.experts = Experts{8, 2, 64, 64};
  model.experts->latent = 128;
  model.experts->latent_norm = true;
  model.depth_block = 2;
  return model;
}

Model of_norms_in_experts() {
  Model model = plain();
  model.norm_place = NormPlace::both;
  model.experts = Experts{8, 2, 64, 512};
  model.experts->own_norms = true;
  return model;
}

Model of_encoder() {
  Model model = plain();
  model.positions = Positions::none;
  model.encoder_layers = 2;
  model.relative_positions = 64;
  return model;
}

Model of_gemma_3n() {
  Model model = plain();
  model.norm_place = NormPlace::both;
  model.qk_norm = model.value_norm = true;
  model.per_layer_width = 32;
  model.per_layer_vocab = 512;
  model.alternating = 4;
  model.laurel_rank = 16;
  model.shapes = {model.own_shape()};
  model.shapes[0].shares_keys = true;
  model.shape_of_layer = {0, 0, 1, 1};
  return model;
}

std::vector<Model> all() {
  return {of_gemma_3n(),  of_shapes(),   of_compressed_keys(),  of_blocks_of_keys(), of_state_spaces(),
          of_kimi(false), of_kimi(true), of_norms_in_experts(), of_encoder()};
}

TEST(ModelShapes, WorkHoldsTheParametersThatAreCounted) {
  for (const Model& model : all()) {
    require_valid(model, "");
    EXPECT_EQ(work_over(model).parameters(0), counted(model));
  }
}

// Ranks hold at least the model together, and copies of a part of it only: of Gemma 3n the larger part.
TEST(ModelShapes, AreSharedOutOverRanks) {
  for (const Model& model : all()) {
    const double alone = work_over(model).parameters(0), halves = 2 * work_over(model, 2).parameters(0);
    EXPECT_GE(halves, alone);
    EXPECT_LT(halves, 1.9 * alone);
  }
}

TEST(ModelShapes, MechanismsWithoutMeasuredKernelsSaySo) {
  const auto unmeasured = [](const Model& model) {
    std::int64_t kernels = 0;
    for (const Block& block : work_over(model).blocks)
      kernels += std::ranges::count(block.forward, true, &Kernel::unmeasured);
    return kernels;
  };
  for (const Model& model : {of_compressed_keys(), of_blocks_of_keys(), of_kimi(true)})
    EXPECT_GT(unmeasured(model), 0);
  for (const Model& model : {of_shapes(), of_state_spaces(), of_norms_in_experts(), of_encoder()})
    EXPECT_EQ(unmeasured(model), 0);
}

TEST(ModelShapes, EachShapeIsABlockOfItsOwn) {
  const Work work = work_over(of_shapes());
  const auto attention = [&](const std::string& block) {
    return std::get<Attention>(kernel_called(block_called(work, block).forward, "attention").what);
  };
  EXPECT_EQ(attention("layer").heads, 8);
  EXPECT_EQ(attention("layer_of_shape_1").heads, 16);
  EXPECT_EQ(attention("layer_of_shape_1").v_head_dim, 16);
  EXPECT_EQ(attention("layer_of_shape_2").v_head_dim, 0);
  EXPECT_EQ(work.parts[0].size(), 6u);  // embedding, four runs of layers, head
}

TEST(ModelShapes, QueriesSeeTheWindowAndCompressedKeys) {
  const Work work = work_over(of_compressed_keys());
  const auto window = [&](int block) {
    return std::get<Attention>(
               kernel_called(work.blocks[static_cast<std::size_t>(block)].forward, "attention").what)
        .window;
  };
  const std::vector<Repeated>& parts = work.parts[0];
  EXPECT_EQ(window(parts[1].block), 32);
  EXPECT_EQ(window(parts[2].block), 32 + kShapeTokens / 32 / 2);
  EXPECT_EQ(window(parts[3].block), 32 + 8);  // the top 8 of 32 before it on average
}

TEST(ModelShapes, RowsOfStreamsPassFromStageToStage) {
  Case c{of_compressed_keys(), {}};
  c.plan.seq = kShapeTokens;
  c.plan.pp = 2;
  const double streams = make_work(c.model, c.plan).boundary_bytes;
  c.model.streams = 1;
  EXPECT_EQ(streams, 4 * make_work(c.model, c.plan).boundary_bytes);
}

TEST(ModelShapes, LayersWithoutAnIndexerSeeAllKeys) {
  const Work work = work_over(of_blocks_of_keys());
  const auto window = [&](const std::string& block) {
    return std::get<Attention>(kernel_called(block_called(work, block).forward, "attention").what).window;
  };
  EXPECT_EQ(window("layer"), 0);
  EXPECT_EQ(window("scoring_layer"), 64);
}

TEST(ModelShapes, DecodersAttendTwice) {
  const Work work = work_over(of_encoder());
  const Block& decoder = block_called(work, "layer");
  EXPECT_TRUE(std::get<Attention>(kernel_called(decoder.forward, "attention").what).causal);
  EXPECT_FALSE(std::get<Attention>(kernel_called(decoder.forward, "cross_attention").what).causal);
  const Block& encoder = block_called(work, "encoder_layer");
  EXPECT_FALSE(std::get<Attention>(kernel_called(encoder.forward, "attention").what).causal);
  EXPECT_EQ(std::ranges::count(encoder.forward, std::string("cross_attention"), &Kernel::name), 0);
}

std::vector<std::string> fields_broken(const Model& model, const Plan& changed) {
  Plan plan = changed;
  plan.seq = kShapeTokens;
  std::vector<std::string> fields;
  for (const BrokenRule& broken : unmet_rules(plan, model, plan.gpus())) fields.push_back(broken.field);
  return fields;
}

TEST(ModelShapes, TensorParallelRanksMustDivideTheHeadsOfEveryShape) {
  Plan plan;
  plan.tp = 8;
  plan.sequence_parallel = false;
  EXPECT_THAT(fields_broken(plain(), plan), IsEmpty());
  Model model = plain();
  model.shapes = {model.own_shape()};
  model.shapes[0].heads = model.shapes[0].kv_heads = 12;
  model.shape_of_layer = {0, 1, 0, 0};
  EXPECT_THAT(fields_broken(model, plan), Contains("tp"));
}

TEST(ModelShapes, EncodersNeedOneStage) {
  Plan plan;
  plan.pp = 2;
  EXPECT_THAT(fields_broken(of_encoder(), plan), Contains("pp"));
}

// Every model whose count is published: nothing is counted that no kernel reads, and nothing is left out.
TEST(ModelShapes, WorkOfEveryPublishedModelHoldsItsParameters) {
  const Json rows = read_json_file(SOURCE_DIR "/tests/model/published_models.json");
  for (const Json& row : rows) {
    const Model model = read_model(scratch().write("model.json", row["config"].dump()));
    EXPECT_EQ(work_over(model).parameters(0), row["total"].get<double>()) << row["name"];
  }
}

}  // namespace
}  // namespace rehearse
