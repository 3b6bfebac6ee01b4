// Layers that replace attention, and layers that choose its keys: parameters, FLOPs, rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/rules/rules.h"
#include "work_case.h"

namespace rehearse {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kScanned = 256, kRows = 256;

Model attending() {
  return llama(4, kRows, 8, 4, 512, 1024);
}

Recurrence recurrence_of(RecurrenceKind kind) {
  if (kind == RecurrenceKind::gated_delta_rule) return {kind, 4, 8, 32, 16, 4, 64};
  if (kind == RecurrenceKind::short_convolution) return {kind, kRows, kRows, 1, 1, 3};
  if (kind == RecurrenceKind::lightning) return {kind, 8, 8, 32, 32, 0, 64};
  return {kind, 1, 2 * kRows, 16, 1, 4, 64, 16, true};
}

Model recurring(RecurrenceKind kind) {
  Model model = attending();
  model.recurrence = recurrence_of(kind);
  model.recurrent = "1110";
  return model;
}

Model indexing() {
  Model model = attending();
  model.kv_heads = model.heads;
  model.latent = LatentAttention{64, 32, 32, 16, 32};
  model.head_dim = 48;
  model.indexer = Indexer{4, 32, 64, "1010"};
  return model;
}

Work work_of(const Model& model, const Plan& changed = {}) {
  Case c{model, changed};
  c.plan.seq = kScanned;
  return make_work(c.model, c.plan);
}

Work at_tp(const Model& model, int tp, bool sequence_parallel) {
  Plan plan;
  plan.tp = tp;
  plan.sequence_parallel = sequence_parallel;
  return work_of(model, plan);
}

constexpr std::array kKinds = {RecurrenceKind::gated_delta_rule, RecurrenceKind::lightning,
                               RecurrenceKind::selective_scan, RecurrenceKind::short_convolution};

std::vector<Model> all_models() {
  std::vector<Model> models;
  for (const RecurrenceKind kind : kKinds) models.push_back(recurring(kind));
  models.push_back(indexing());
  models.push_back(attending());
  models.back().attention_gate = true;
  return models;
}

TEST(Recurrence, RanksHoldWhatTheModelCounts) {
  for (const Model& model : all_models())
    EXPECT_EQ(work_of(model).parameters(0), double(count_parameters(model).total));
}

TEST(Recurrence, LayersAloneHoldWhatTheModelCounts) {
  Model model = recurring(RecurrenceKind::selective_scan);
  model.recurrent = "";
  model.pattern = "MMMM";
  EXPECT_FALSE(model.attends());
  EXPECT_EQ(work_of(model).parameters(0), double(count_parameters(model).total));
}

// transformers, Qwen3NextGatedDeltaNet: the tensors of one layer.
TEST(Recurrence, TheDeltaRuleHasItsClassesShapes) {
  const Model model = recurring(RecurrenceKind::gated_delta_rule);
  const std::int64_t keys = 4 * 32, values = 8 * 16;
  const std::int64_t in_proj_qkvz = kRows * (2 * keys + 2 * values), in_proj_ba = kRows * 2 * 8;
  const std::int64_t conv1d = (2 * keys + values) * 4, dt_bias = 8, a_log = 8, norm = 16;
  EXPECT_EQ(count_parameters(model).recurrence,
            in_proj_qkvz + in_proj_ba + conv1d + dt_bias + a_log + norm + values * kRows);
}

// FLOPs of a token and head in a chunk of C tokens (transformers, torch_chunk_gated_delta_rule): scores 2 C
// dk, keys 2 C dk, values 2 C dv, the state's share of them 2 dk dv. The scan adds 2 C (dk + dv) + 4 dk dv.
TEST(Recurrence, TheDeltaRuleCostsItsProducts) {
  const double chunk = 64, keys = 32, values = 16, heads = 8;
  const double expected =
      double(kScanned) * heads *
      (2 * chunk * (2 * keys + values) + 2 * keys * values + 2 * chunk * (keys + values) + 4 * keys * values);
  double found = 0;
  for (const Kernel& kernel :
       block_called(work_of(recurring(RecurrenceKind::gated_delta_rule)), "recurrent_layer").forward)
    if (kernel.unmeasured) found += flops(kernel);
  EXPECT_DOUBLE_EQ(found, expected);
}

TEST(Recurrence, ThePassBackCostsTwiceTheForward) {
  for (const Model& model : all_models()) {
    if (model.indexer) continue;  // scores all pairs forward, and has gradients of the chosen alone
    const FlopCount count = count_flops(work_of(model), Plan{});
    EXPECT_NEAR(count.backward / count.forward, 2, 1e-9);
  }
}

TEST(Recurrence, OnlyItsOwnKernelsAreUnmeasured) {
  const Work work = work_of(recurring(RecurrenceKind::gated_delta_rule));
  const auto unmeasured = [](const std::vector<Kernel>& kernels) {
    std::vector<std::string> names;
    for (const Kernel& kernel : kernels)
      if (kernel.unmeasured) names.push_back(kernel.name);
    return names;
  };
  const Block& recurrent = block_called(work, "recurrent_layer");
  EXPECT_THAT(unmeasured(recurrent.forward), Contains("delta_scan"));
  EXPECT_THAT(unmeasured(recurrent.forward), Not(Contains("linear_inputs")));
  EXPECT_THAT(unmeasured(recurrent.backward_input), Contains("delta_scan_backward"));
  EXPECT_THAT(unmeasured(recurrent.backward_input), Not(Contains("linear_projection_input_gradient")));
  EXPECT_THAT(unmeasured(block_called(work, "layer").forward), testing::IsEmpty());
}

TEST(Recurrence, TensorParallelRanksShareItsHeads) {
  for (const Model& model : all_models()) {
    if (model.recurrence && model.recurrence->kind == RecurrenceKind::selective_scan) continue;
    const FlopCount alone = count_flops(work_of(model), Plan{});
    for (const bool sequence_parallel : {false, true}) {
      Plan plan;
      plan.tp = 2;
      const FlopCount shared = count_flops(at_tp(model, 2, sequence_parallel), plan);
      EXPECT_NEAR(shared.model() / alone.model(), 1, 1e-9);
    }
  }
}

// With full recompute only a layer's input stays.
TEST(Recurrence, RecomputeDropsWhatItMakes) {
  for (const Model& model : all_models()) {
    Plan plan;
    const auto saved = [&](Recompute recompute) {
      plan.recompute = recompute;
      const Work work = work_of(model, plan);
      double sum = 0;
      for (const Block& block : work.blocks)
        if (block.name.ends_with("layer")) sum += saved_bytes(block);
      return sum;
    };
    EXPECT_LT(saved(Recompute::full), saved(Recompute::selective));
    EXPECT_LE(saved(Recompute::selective), saved(Recompute::none));
  }
}

TEST(Indexer, AttentionSeesTheChosenKeys) {
  const Work work = work_of(indexing());
  for (const char* name : {"scoring_layer", "layer"}) {
    const auto& kernels = block_called(work, name).forward;
    const auto attention = std::ranges::find_if(
        kernels, [](const Kernel& kernel) { return std::holds_alternative<Attention>(kernel.what); });
    ASSERT_NE(attention, kernels.end());
    EXPECT_EQ(std::get<Attention>(attention->what).window, 64) << name;
  }
  const auto scores = [&](const char* name) {
    return std::ranges::count(block_called(work, name).forward, std::string("index_scores"), &Kernel::name);
  };
  EXPECT_EQ(scores("scoring_layer"), 1);
  EXPECT_EQ(scores("layer"), 0) << "layers share the scores of the last one with its own";
}

double attention_flops(const Model& model) {
  double sum = 0;
  for (const Kernel& kernel : block_called(work_of(model), "layer").forward)
    if (std::holds_alternative<Attention>(kernel.what)) sum += flops(kernel);
  return sum;
}

TEST(Chunks, AreSequencesOfTheirOwn) {
  Model model = attending();
  const double whole = attention_flops(model);
  model.window = kScanned / 4;
  model.window_in_chunks = true;
  EXPECT_DOUBLE_EQ(attention_flops(model), whole / 4);
  model.window = kScanned;
  EXPECT_DOUBLE_EQ(attention_flops(model), whole);
}

std::vector<std::string> rules_broken(const Model& model, int tp, int cp) {
  Plan plan;
  plan.tp = tp;
  plan.cp = cp;
  plan.seq = kScanned;
  std::vector<std::string> rules;
  for (const Violation& violation : broken_rules(plan, model, plan.gpus())) rules.push_back(violation.rule);
  return rules;
}

TEST(Recurrence, RulesNameTheSplitsWithoutKernels) {
  const Model delta = recurring(RecurrenceKind::gated_delta_rule);
  EXPECT_THAT(rules_broken(delta, 1, 2), Contains(HasSubstr("a recurrence over context-parallel ranks")));
  EXPECT_THAT(rules_broken(indexing(), 1, 2), Contains(HasSubstr("an indexer over context-parallel ranks")));
  EXPECT_THAT(rules_broken(delta, 8, 1),
              Contains(HasSubstr("tp must divide the key heads of the recurrence")));
  EXPECT_THAT(rules_broken(delta, 4, 1), Not(Contains(HasSubstr("recurrence"))));
  EXPECT_THAT(rules_broken(recurring(RecurrenceKind::selective_scan), 2, 1),
              Contains(HasSubstr("no tensor parallelism of Mamba-1")));
}

}  // namespace
}  // namespace rehearse
