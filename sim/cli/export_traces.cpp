#include <fmt/core.h>

#include <filesystem>
#include <sstream>

#include "base/say.h"
#include "cli/export.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "cli/verdict.h"
#include "export/traces.h"
#include "result/chrome_trace.h"
#include "run/size.h"
#include "scenario/scenario.h"

namespace rehearse {

namespace {

struct TraceOptions : ExportOptions {
  bool allow_oom = false;
};

struct Exported {
  Iteration run;
  int code = kDone;  // 3 where the plan must fit and does not
};

Exported simulated(const TraceOptions& options, const OutputCost& cost) {
  const ScenarioSource source = collect(options.given);
  Scenario scenario = read_scenario(source);
  scenario.experiment.every_microbatch = true;
  scenario.experiment.output = cost;
  Exported exported{run_scenario(source, scenario.experiment)};
  Report& report = exported.run.report;
  exported.code = judge(source, scenario, options.allow_oom, report);
  if (!memory_verdict(report).fits()) say(stderr, "rehearse: {}\n", verdict_sentence(report));
  return exported;
}

Json chrome_trace(const Iteration& run) {
  std::ostringstream text;
  write_chrome_trace(text, run.timeline, run.preparation.schedule, run.report, run.preparation.work);
  return Json::parse(text.str());
}

// The folder of -o, created when missing.
std::filesystem::path folder(const ExportOptions& options) {
  if (options.output.empty())
    throw InputError({"command line", "-o", "is required: a folder, for one file per rank", "", "-o traces"});
  if (options.output == "-")
    throw InputError(
        {"command line", "-o", "one file per rank cannot go to standard output", "", "-o traces"});
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error) throw InputError({"command line", "-o", "cannot make this folder", options.output, ""});
  return options.output;
}

void write(const std::filesystem::path& file, const std::string& text) {
  write_file(file, [&](std::ostream& out) { out << text; });
}

int export_perfetto(const TraceOptions& options) {
  const Exported exported = simulated(options, kPerfettoCost);
  write_export(options, perfetto_trace(chrome_trace(exported.run), "trace"));
  return exported.code;
}

int export_kineto(const TraceOptions& options) {
  const std::filesystem::path to = folder(options);
  const auto [run, code] = simulated(options, kKinetoCost);
  for (const RankTrace& rank : kineto_traces(chrome_trace(run), run.report))
    write(to / fmt::format("rank{}.json", rank.rank), kineto_text(rank));
  return code;
}

int export_chakra(const TraceOptions& options) {
  const std::filesystem::path to = folder(options);
  const auto [run, code] = simulated(options, {});
  const Preparation& ready = run.preparation;
  const TracedRun traced{run.timeline, ready.schedule, run.report, ready.work};
  const Json groups = chakra_groups(traced);
  for (int rank = 0; rank < run.report.plan.gpus(); ++rank)
    write(to / fmt::format("rehearse.{}.et", rank), chakra_trace(traced, groups, rank));
  write(to / "comm_group.json", groups.dump() + "\n");
  return code;
}

Verb trace_verb(const std::string& name, const std::string& help, int (*run)(const TraceOptions&)) {
  const auto options = std::make_shared<TraceOptions>();
  Verb verb = format_verb(name, help, *options);
  if (name != "perfetto") {
    verb.options.back().help = "folder of the files, one per rank";
    verb.options.back().value = "DIR";
  }
  verb.add(allow_oom_option(options->allow_oom));
  verb.run = [options, run] { return run(*options); };
  return verb;
}

}  // namespace

std::vector<Verb> export_trace_verbs() {
  return {trace_verb("kineto", "one trace per rank as PyTorch's profiler writes it, for HTA and TensorBoard",
                     export_kineto),
          trace_verb("perfetto", "Perfetto's protobuf trace (.pftrace)", export_perfetto),
          trace_verb("chakra", "Chakra execution traces, one per rank, with their process groups",
                     export_chakra)};
}

}  // namespace rehearse
