#include "cli/show_comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/say.h"
#include "cli/file_kind.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "draw/pipeline.h"
#include "result/compare/gates.h"
#include "result/compare/join_traces.h"

namespace rehearse {

namespace {

void require_timelines(const std::string& flag, const std::vector<const Side*>& sides) {
  for (const Side* side : sides)
    if (!side->recorded)
      throw InputError({"command line", flag, "shows timelines: compare the traces that --trace wrote",
                        side->name + " is a report", ""});
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// A trace is titled by its run's name, without the file's ending.
std::string title_of(const Side& side) {
  return std::filesystem::path(side.name).stem().string();
}

void write_picture(const std::string& file, const std::vector<const Side*>& sides) {
  std::vector<Report> reports;
  for (const Side* side : sides) reports.push_back(read_report_head(JsonReader(side->report, side->name)));
  std::vector<DrawnRun> runs;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const RecordedRun& run = *sides[i]->recorded;
    runs.push_back({title_of(*sides[i]), run.timeline, run.schedule, reports[i]});
  }
  write_file(file, [&](std::ostream& out) { out << draw_pipelines(runs); });
}

ComparedRun run_of(const Side& side) {
  if (!side.recorded) return compared_run(side.name, side.report);
  return compared_run(side.name, side.report, &side.recorded->timeline, &side.recorded->schedule);
}

int print_and_gate(const ComparisonOptions& options, const ReportComparison& comparison) {
  const std::vector<Gate> gates =
      options.fail_above.empty() ? std::vector<Gate>{} : parse_gates(options.fail_above);
  const std::vector<std::string> beyond = beyond_gates(comparison, gates);
  Json json = comparison_json(comparison);
  json["failed"] = beyond;
  print_answer(options.json ? json.dump(2) + "\n" : comparison_table(comparison), options.json);
  if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to standard output");
  for (const std::string& sentence : beyond) say(stderr, "rehearse: {}\n", sentence);
  return beyond.empty() ? kDone : kGateFailed;
}

}  // namespace

std::vector<VerbOption> comparison_options(ComparisonOptions& options) {
  return {
      {{"--json"}, &options.json, "print the comparison as one JSON object"},
      {.names = {"--svg"},
       .target = &options.svg,
       .help = "of two traces or more: the pipelines on one time axis",
       .value = "FILE",
       .refuse = named_as(".svg")},
      {{"--trace"}, &options.trace, "of two traces: one Chrome trace with both, rank next to rank", "FILE"},
      gates_option(options.fail_above,
                   "exit with 5 when |A/B - 1| of the step time, or of named quantities, is larger")};
}

VerbOption gates_option(std::string& gates, const std::string& help) {
  // Checked during parsing: an empty variable of a script must not become a gate that all runs pass.
  const auto refuse = [](const std::string& text) {
    parse_gates(text);
    return std::string();
  };
  return {
      .names = {"--fail-above"}, .target = &gates, .help = help, .value = "5%|NAME=5%,...", .refuse = refuse};
}

Side read_side(const std::string& file) {
  const Json json = read_json_file(file, kTraceLimits);
  if (is_trace(json)) {
    RecordedRun run = read_trace(json, file);
    Json report = run.report;
    return {file, std::move(report), std::move(run), json};
  }
  const JsonReader reader(json, file);
  if (reader.text_or("schema", "") != "rehearse.report/1")
    reader.fail(
        "schema", "is neither a report (simulate --json, execute --json) nor a trace that --trace wrote",
        "found " + (reader.has("schema") ? reader.value("schema").dump() : "none"), "rehearse.report/1");
  return {file, json, std::nullopt, Json()};
}

int show_comparison(const ComparisonOptions& options, const Side& a, const Side& b,
                    const std::vector<Side>& more) {
  if (!more.empty() && options.svg.empty())
    throw InputError({"command line", "--svg", "more than two traces are compared as a picture",
                      fmt::format("{} files given", 2 + more.size()), "--svg FILE, or two files"});
  require_writable({options.svg, options.trace}, options.json ? Prints::data : Prints::talk);
  const ReportComparison comparison = compare_runs(run_of(a), run_of(b));
  if (!options.svg.empty()) {
    std::vector<const Side*> sides = {&a, &b};
    for (const Side& side : more) sides.push_back(&side);
    require_timelines("--svg", sides);
    write_picture(options.svg, sides);
  }
  if (!options.trace.empty()) {
    require_timelines("--trace", {&a, &b});
    const Json joined = join_traces(a.trace, file_name(a.name), b.trace, file_name(b.name));
    write_file(options.trace, [&](std::ostream& out) { out << joined.dump() << '\n'; });
  }
  return print_and_gate(options, comparison);
}

int show_common(const ComparisonOptions& options, const Side& a, ComparedRun b,
                const std::vector<std::string>& of_other_work) {
  if (!options.svg.empty() || !options.trace.empty())
    throw InputError({"command line", options.svg.empty() ? "--trace" : "--svg",
                      "shows timelines: compare the traces that --trace wrote", b.name + " is a log", ""});
  ReportComparison comparison = compare_runs(run_of(a), std::move(b));
  std::erase_if(comparison.pairs, [](const QuantityPair& pair) { return !pair.a || !pair.b; });
  for (QuantityPair& pair : comparison.pairs)
    pair.comparable = std::ranges::find(of_other_work, pair.name) == of_other_work.end();
  return print_and_gate(options, comparison);
}

}  // namespace rehearse
