// Automatic choices of the program are never slower than the alternative.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

#include "most.h"
#include "run.h"

namespace rehearse::properties {
namespace {

constexpr double kRounding = 1e-9;

// Keys of a scenario that split layers.
constexpr std::array kSplitKeys = {"layers_per_stage",   "layout",
                                   "first_rank_layers",  "last_rank_layers",
                                   "embedding_as_layer", "loss_as_layer"};

ScenarioSource split_as(const Run& run, const Json& layers) {
  ScenarioSource source = run.source;
  source.json["engine"] = "reference";
  source.json["iterations"] = 1;
  for (const char* key : kSplitKeys) source.json["plan"].erase(key);
  source.json["plan"]["vpp"] = run.experiment.plan.vpp;
  if (!layers.is_null()) source.json["plan"]["layers_per_stage"] = layers;
  return source;
}

// Nothing where it is refused.
std::optional<Report> report_of(const ScenarioSource& source) {
  try {
    return run_iteration(read(source)).report;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

RC_GTEST_PROP(LegalRun, SplitsLayersByItselfNoSlowerThanEvenly, ()) {
  const auto run = legal_run();
  const Experiment& experiment = run->experiment;
  RC_PRE(experiment.stage_nodes.empty() && !experiment.conditions.has_jitter() && experiment.plan.pp > 1);
  const auto evenly = report_of(split_as(*run, nullptr));
  RC_PRE(evenly.has_value());
  const auto chosen = report_of(split_as(*run, "auto"));
  RC_ASSERT(chosen.has_value());
  RC_CLASSIFY(std::ranges::adjacent_find(chosen->plan.layers_per_stage, std::ranges::not_equal_to()) !=
                  chosen->plan.layers_per_stage.end(),
              "another split");
  RC_ASSERT(memory_verdict(*chosen).fits() || !memory_verdict(*evenly).fits());
  if (!memory_verdict(*evenly).leaves_headroom) return;
  note_most("layers split by itself: gain", 1 - chosen->step_time_s / evenly->step_time_s);
  RC_ASSERT(chosen->step_time_s <= evenly->step_time_s * (1 + kRounding));
}

// Messages between stages overlap compute where the schedule leaves them room.
RC_GTEST_PROP(LegalRun, OverlapsPipelineMessagesByItselfNoSlowerThanNot, ()) {
  const auto run = legal_run();
  RC_PRE(run->experiment.plan.pp > 1 && !run->experiment.conditions.has_jitter());
  const auto with_overlap = [&](const Json& overlap) {
    ScenarioSource source = run->source;
    source.json["engine"] = "reference";
    source.json["iterations"] = 1;
    source.json["plan"].erase("overlap_p2p");
    if (!overlap.is_null()) source.json["plan"]["overlap_p2p"] = overlap;
    return report_of(source);
  };
  const auto chosen = with_overlap(nullptr), without = with_overlap(false);
  RC_PRE(chosen.has_value() && without.has_value());
  note_most("messages overlapped by themselves: loss", chosen->step_time_s / without->step_time_s - 1);
  RC_ASSERT(chosen->step_time_s <= without->step_time_s * (1 + kRounding));
}

// 4 x 40 GPUs rather than 72 + 72 + 16, of which 16 have few NICs.
TEST(Domains, OfTwoAndALittleAreSharedOutByThemselvesNoSlowerThanFilled) {
  for (const int tp : {4, 8}) {
    for (const int zero : {0, 1, 3}) {
      ScenarioSource by_itself;
      by_itself.json = {{"schema", "rehearse.scenario/1"},
                        {"model", "llama3-8b"},
                        {"cluster", "gb200-nvl72"},
                        {"engine", "reference"},
                        {"gpus", 160}};
      by_itself.json["plan"] = {
          {"tp", tp}, {"dp", 160 / tp}, {"zero", zero}, {"global_batch", 160 / tp}, {"seq", 2048}};
      ScenarioSource filled = by_itself;
      filled.json["gpus_per_node"] = 72;
      const auto chosen = report_of(by_itself), without = report_of(filled);
      ASSERT_TRUE(chosen.has_value() && without.has_value());
      EXPECT_LT(chosen->step_time_s, without->step_time_s) << "tp " << tp << ", zero " << zero;
    }
  }
}

}  // namespace
}  // namespace rehearse::properties
