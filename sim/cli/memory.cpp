#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <ostream>

#include "cli/output.h"
#include "cli/say.h"
#include "cli/scenario.h"
#include "cli/verbs.h"
#include "result/memory/reserved.h"
#include "result/memory/sizing.h"
#include "result/memory/table.h"
#include "result/svg/memory.h"
#include "run/iteration.h"
#include "run/outside_allocator.h"

namespace rehearse {

namespace {

struct MemoryOptions {
  GivenFlags given;
  bool json = false;
  std::string svg;
};

std::string peak_op_of(const Report& report, const Schedule& schedule) {
  const RankMemory heaviest = heaviest_rank(report);
  if (heaviest.peak_op < 0) return "";
  return to_string(
      schedule.ranks[static_cast<std::size_t>(heaviest.rank)][static_cast<std::size_t>(heaviest.peak_op)]);
}

// Of the heaviest rank, if its peak fits.
std::optional<double> reserved_of(const Experiment& experiment, const Report& report,
                                  const Preparation& ready) {
  const RankMemory rank = heaviest_rank(report);
  const Footprint gpu = footprints(report)[static_cast<std::size_t>(rank.rank)];
  if (!gpu.fits()) return {};
  const std::int64_t microbatches =
      experiment.order ? kAllMicrobatches : shortened(report.plan).microbatches();
  return reserved_bytes(ready.schedule.ranks[static_cast<std::size_t>(rank.rank)], rank, report.plan,
                        ready.work, gpu.capacity_bytes - gpu.outside.all(), microbatches);
}

// Where nodes are mixed: on those that the fullest pipeline rank has.
std::optional<FewestGpus> sizing_of(const Experiment& experiment, const Report& report) {
  const RunFacts& facts = report.facts;
  Experiment alike = experiment;  // whose pipeline ranks have equal nodes
  if (const StageNodes& nodes = experiment.stage_nodes; !nodes.empty()) {
    const NodeKind& kind = nodes.of_rank(fullest_gpu(report).rank);
    alike.cluster = kind.cluster;
    alike.profile = kind.profile;
    alike.stage_nodes = {};
  }
  const Cluster& cluster = alike.cluster;
  const auto outside = [&](const Plan& plan, const Work& work) {
    return outside_allocator(alike, plan, work);
  };
  return fewest_gpus(experiment.model, experiment.plan,
                     {facts.gpu_memory_bytes, facts.workspace_bytes, cluster.node.gpus,
                      std::int64_t{cluster.max_nodes} * cluster.node.gpus, outside});
}

// True when it fits.
bool show_memory(const MemoryOptions& options) {
  Scenario scenario = read_scenario(collect(options.given));
  scenario.experiment.engine = Engine::reference;  // when the peak is does not hang on contention
  Iteration iteration = run_iteration(scenario.experiment);
  Report& report = iteration.report;
  report.facts.warnings.insert(report.facts.warnings.end(), scenario.notes.begin(), scenario.notes.end());
  const Preparation& ready = iteration.preparation;
  if (!options.svg.empty()) {
    write_file(options.svg, [&](std::ostream& out) {
      out << draw_memory(iteration.timeline, ready.schedule, report, ready.work);
    });
  }
  const HeaviestRank heaviest = {peak_op_of(report, ready.schedule),
                                 reserved_of(scenario.experiment, report, ready)};
  const auto fewest = sizing_of(scenario.experiment, report);
  if (options.json) {
    fmt::print("{}\n", memory_json(report, heaviest, fewest, REHEARSE_VERSION).dump(2));
  } else {
    for (const std::string& note : scenario.notes) say(stderr, "note: {}\n", note);
    say("{}", write_memory_table(report, heaviest, fewest));
  }
  return fullest_gpu(report).fits();
}

}  // namespace

void add_memory(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("memory", "itemised bytes of every pipeline rank, and how many GPUs at least");
  const auto options = std::make_shared<MemoryOptions>();
  add_scenario_flags(*verb, options->given);
  verb->add_flag("--json", options->json, "print one JSON object");
  verb->add_option("--svg", options->svg, "write the memory over time as a picture")->option_text("FILE");
  verb->footer(
      "Exit code 3 when it does not fit.\n"
      "Examples:\n"
      "  rehearse memory scenarios/llama3-70b-512-h100.json --svg memory.svg\n"
      "  rehearse memory --model llama2-70b --cluster dgx-a100-80gb --gpus 128 --tp 8 --pp 8 --gbs 256\n"
      "  rehearse memory --model gpt3-175b --cluster selene --tp 8 --pp 8 --gbs 64 --recompute full "
      "--recompute-num-layers 2");
  verb->callback([options, &exit_code] { exit_code = show_memory(*options) ? kDone : kDoesNotFit; });
}

}  // namespace rehearse
