// Does the plan fit? Whoever asks is told the same, to the byte.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "cli/studio_answer.h"
#include "cli/sweep_row.h"
#include "result/memory_table.h"
#include "run.h"
#include "run/fit.h"
#include "scratch.h"
#include "search/search.h"

namespace rehearse::properties {
namespace {

// The same run on GPUs with that memory, as the longest path walks one iteration of it.
ScenarioSource with_memory(const Run& run, double bytes) {
  ScenarioSource source = run.source;
  Json& plan = source.json["plan"];
  // An automatic split would take another one that fits.
  if (plan.value("layers_per_stage", Json()) == "auto")
    plan["layers_per_stage"] = run.experiment.plan.layers_per_stage;
  source.json["cluster_changes"]["gpu"]["memory"] = fmt::format("{:.0f}B", bytes);
  source.json["engine"] = "reference";
  source.json["iterations"] = 1;
  return source;
}

bool is_searched(const Experiment& experiment) {
  return experiment.plan.sync_step && !experiment.conditions.has_jitter();
}

bool found_by_search(const Experiment& experiment) {
  Experiment filled = experiment;
  filled.headroom = {.share = 0};
  return search(filled, {experiment.plan}, {}).does_not_fit == 0;
}

// Nothing where the run is too large for the studio.
std::optional<bool> said_by_studio(const ScenarioSource& source, Inputs& inputs) {
  GivenFlags given;
  given.file = scratch().write("fits.json", source.json.dump());
  const Json answer = studio_answer("{}", given, {}, Engine::reference, inputs);
  if (!answer.contains("run")) return std::nullopt;
  return answer["run"]["report"]["memory"]["fits"].get<bool>();
}

RC_GTEST_PROP(LegalRun, FitsForEverybodyWhoAsksOrForNobody, ()) {
  const auto run = legal_run();
  RC_PRE(run->experiment.stage_nodes.empty());
  const Footprint gpu = fullest_gpu(report_of(run->experiment, run->ready, run->reference));
  const double least = std::ceil(gpu.needed_bytes());
  for (const double bytes : {least, least - 1, std::max(1.0, std::ceil(gpu.peak_bytes))}) {
    const bool expected = gpu.needed_bytes() <= bytes;
    const ScenarioSource source = with_memory(*run, bytes);
    Inputs inputs;
    const Row row = evaluate_row(source, inputs);
    RC_ASSERT(row.state == (expected ? RowState::done : RowState::does_not_fit));
    RC_ASSERT(row.report["memory"]["fits"] == expected);
    RC_ASSERT((row.report["memory"]["verdict"] != "does not fit") == expected);
    const Experiment experiment = read(source);
    const Report report = run_iteration(experiment).report;
    const Json memory = memory_json(report, {}, std::nullopt, "");
    RC_ASSERT(memory["fits"] == expected);
    RC_ASSERT(memory["verdict"] == row.report["memory"]["verdict"]);
    RC_ASSERT(fullest(footprints_of(experiment)).needed_bytes() == gpu.needed_bytes());
    RC_ASSERT((memory["headroom_bytes"].get<double>() >= 0) == expected);
    if (is_searched(experiment)) RC_ASSERT(found_by_search(experiment) == expected);
    RC_ASSERT(said_by_studio(source, inputs).value_or(expected) == expected);
  }
}

}  // namespace
}  // namespace rehearse::properties
