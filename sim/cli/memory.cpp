#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <ostream>

#include "base/say.h"
#include "cli/file_kind.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "draw/memory.h"
#include "result/memory_table.h"
#include "run/fit.h"
#include "scenario/scenario.h"

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
  Op op = schedule.ranks[static_cast<std::size_t>(heaviest.rank)][static_cast<std::size_t>(heaviest.peak_op)];
  op.microbatch = heaviest.peak_microbatch;
  return to_string(op);
}

// Returns the exit code.
int show_memory(const MemoryOptions& options) {
  const ScenarioSource source = collect(options.given);
  require_writable({options.svg}, options.json ? Prints::data : Prints::talk);
  Scenario scenario = read_scenario(source);
  scenario.experiment.engine = Engine::reference;  // the time of the peak does not depend on contention
  scenario.experiment.memory_only = true;
  scenario.experiment.every_microbatch = !options.svg.empty();
  Iteration iteration = run_scenario(source, scenario.experiment);
  Report& report = iteration.report;
  report.facts.warnings.insert(report.facts.warnings.end(), scenario.notes.begin(), scenario.notes.end());
  const Preparation& ready = iteration.preparation;
  if (!options.svg.empty()) {
    write_file(options.svg, [&](std::ostream& out) {
      out << draw_memory(iteration.timeline, ready.schedule, report, ready.work);
    });
  }
  const MemoryVerdict verdict = memory_verdict(report);
  const HeaviestRank heaviest = {peak_op_of(report, ready.schedule)};
  const auto fewest = fewest_gpus_of(scenario.experiment, {.share = 0}, verdict.gpu.rank);
  if (options.json) {
    fmt::print("{}\n", memory_json(report, heaviest, fewest, REHEARSE_VERSION).dump(2));
  } else {
    for (const std::string& note : scenario.notes) say(stderr, "note: {}\n", note);
    say("{}", write_memory_table(report, heaviest, fewest));
  }
  if (!verdict.is_decided()) return kInvalidInput;
  return verdict.fits() ? kDone : kDoesNotFit;
}

}  // namespace

Verb memory_verb() {
  const auto options = std::make_shared<MemoryOptions>();
  Verb verb{"memory", "memory of every pipeline rank by category, and the fewest GPUs"};
  verb.add_all(scenario_options(options->given));
  verb.add({{"--json"}, &options->json, "print one JSON object"});
  verb.add({.names = {"--svg"},
            .target = &options->svg,
            .help = "write the memory over time as a picture",
            .value = "FILE",
            .refuse = named_as(".svg")});
  verb.footer =
      "Exit code 3 when it does not fit, 2 when an option that is not counted decides.\n"
      "Examples:\n"
      "  rehearse memory scenarios/llama3-70b-512-h100.json --svg memory.svg\n"
      "  rehearse memory --model llama2-70b --cluster dgx-a100-80gb --gpus 128 --tp 8 --pp 8 --gbs 256\n"
      "  rehearse memory --model gpt3-175b --cluster selene --tp 8 --pp 8 --gbs 64 --recompute full "
      "--recompute-num-layers 2";
  verb.run = [options] { return show_memory(*options); };
  return verb;
}

}  // namespace rehearse
