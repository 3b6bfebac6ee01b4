// Memory against the published theory of Korthikanti et al., to its digits.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "memory/memory.h"
#include "plan/recipe.h"
#include "schedule/orders.h"

namespace rehearse {
namespace {

using Json = nlohmann::json;

constexpr double kGib = 1024.0 * 1024 * 1024;

Json published() {
  std::ifstream in(std::string(SOURCE_DIR) + "/tests/golden/published_memory.json");
  return Json::parse(in);
}

Model model_of(const Json& row, bool gpt) {
  Model model;
  model.name = row["id"];
  model.layers = row["layers"];
  model.hidden = row["hidden"];
  model.heads = row["heads"];
  model.kv_heads = row.value("kv_heads", model.heads);
  model.head_dim = model.hidden / model.heads;
  model.ffn_hidden = row.value("ffn", 4 * model.hidden);
  model.vocab = row.value("vocab", 51200);
  model.max_positions = row.value("seq", 2048);
  if (!gpt) return model;
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = model.dropout = true;
  model.tied_embeddings = true;
  return model;
}

Plan theoretical_plan(const Json& row) {
  Plan plan;
  plan.tp = 8;
  plan.pp = row["pp"];
  plan.vpp = row["vpp"];
  plan.global_batch = row["microbatches"];
  plan.schedule = plan.vpp > 1 ? ScheduleName::interleaved : ScheduleName::one_f_one_b;
  plan.precision = Precision::fp16;
  plan.fused_attention = false;
  return plan;
}

// Activations of the layers alone: the peak over the first rank's schedule, op by op.
double layer_activations(const Json& row, const Plan& plan) {
  const Model model = model_of(row, true);
  Work work = make_work(model, plan);
  for (auto& parts : work.parts)
    std::erase_if(parts, [&](const Repeated& part) {
      return work.blocks[static_cast<std::size_t>(part.block)].name != "layer";
    });
  const Schedule schedule = make_order(plan);
  double held = 0, most = 0;
  for (const Op& op : schedule.ranks[0].ops()) {
    if (op.kind == OpKind::forward) held += work.saved_bytes(op.stage);
    most = std::max(most, held);
    if (op.kind == OpKind::backward) held -= work.saved_bytes(op.stage);
  }
  return most;
}

double matrices_of_a_layer(const Json& row, const Plan& plan) {
  double elements = 0;
  for (const Block& block : make_work(model_of(row, true), plan).blocks)
    if (block.name == "layer")
      for (const char* name : {"qkv_weight", "projection_weight", "mlp_up_weight", "mlp_down_weight"})
        for (const Tensor& tensor : block.tensors) elements += tensor.name == name ? tensor.elements : 0;
  return elements;
}

TEST(PublishedMemory, TheoryOfKorthikantiIsMetToItsDigits) {
  const Json rows = published().at("theoretical");
  ASSERT_FALSE(rows.empty());
  for (const Json& row : rows) {
    Plan plan = theoretical_plan(row);
    const double layers = row["layers"].get<double>() / plan.pp;
    EXPECT_NEAR(layers * matrices_of_a_layer(row, plan) * state_bytes(plan).total() / kGib, row["state_gib"],
                5e-7)
        << row["id"];
    EXPECT_NEAR(layer_activations(row, plan) / kGib, row["activations_none_gib"], 5e-5) << row["id"];
    plan.sequence_parallel = true;
    plan.recompute = Recompute::selective;
    EXPECT_NEAR(layer_activations(row, plan) / kGib, row["activations_selective_gib"], 5e-5) << row["id"];
  }
}

}  // namespace
}  // namespace rehearse
