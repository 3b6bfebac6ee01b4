#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <sstream>

#include "cli/export.h"
#include "cli/output.h"
#include "cli/scenario.h"
#include "cli/verbs.h"
#include "export/traces.h"
#include "result/chrome_trace.h"

namespace rehearse {

namespace {

Iteration simulated(const ExportOptions& options) {
  return run_iteration(read_scenario(collect(options.given)).experiment);
}

Json chrome_trace(const Iteration& run) {
  std::ostringstream text;
  write_chrome_trace(text, run.timeline, run.preparation.schedule, run.report, run.preparation.work);
  return Json::parse(text.str());
}

// The folder that -o names, made when it is not there.
std::filesystem::path folder(const ExportOptions& options) {
  if (options.output.empty())
    throw InputError({"command line", "-o", "is required: a folder, for a file a rank", "", "-o traces"});
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error) throw InputError({"command line", "-o", "cannot make this folder", options.output, ""});
  return options.output;
}

void write(const std::filesystem::path& file, const std::string& text) {
  write_file(file, [&](std::ostream& out) { out << text; });
}

void export_perfetto(const ExportOptions& options) {
  write_export(options, perfetto_trace(chrome_trace(simulated(options)), "trace"));
}

void export_kineto(const ExportOptions& options) {
  const std::filesystem::path to = folder(options);
  const Iteration run = simulated(options);
  for (const RankTrace& rank : kineto_traces(chrome_trace(run), run.report))
    write(to / fmt::format("rank{}.json", rank.rank), rank.trace.dump() + "\n");
}

void export_chakra(const ExportOptions& options) {
  const std::filesystem::path to = folder(options);
  const Iteration run = simulated(options);
  const Preparation& ready = run.preparation;
  const Json groups = chakra_groups(run.report.plan, run.report.model.shares_embedding());
  for (int rank = 0; rank < run.report.plan.gpus(); ++rank)
    write(to / fmt::format("rehearse.{}.et", rank),
          chakra_trace({run.timeline, ready.schedule, run.report, ready.work}, groups, rank));
  write(to / "comm_group.json", groups.dump() + "\n");
}

void add(CLI::App& verb, int& exit_code, const std::string& name, const std::string& help,
         void (*run)(const ExportOptions&)) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* format = add_format(verb, name, help, options);
  if (name != "perfetto")
    format->get_option("--output")->description("folder of the files, a file a rank")->option_text("DIR");
  format->callback([options, &exit_code, run] {
    run(*options);
    exit_code = kDone;
  });
}

}  // namespace

void add_export_traces(CLI::App& verb, int& exit_code) {
  add(verb, exit_code, "kineto", "a trace a rank as PyTorch's profiler writes it, for HTA and TensorBoard",
      export_kineto);
  add(verb, exit_code, "perfetto", "Perfetto's protobuf trace (.pftrace)", export_perfetto);
  add(verb, exit_code, "chakra", "Chakra execution traces, one a rank, with their process groups",
      export_chakra);
}

}  // namespace rehearse
