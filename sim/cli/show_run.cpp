#include "cli/show_run.h"

#include <fmt/core.h>

#include <cstdio>

#include "base/quantity.h"
#include "cli/command.h"
#include "cli/file_kind.h"
#include "cli/png.h"
#include "draw/html/report_page.h"
#include "draw/pipeline.h"
#include "result/chrome_trace.h"
#include "result/report_json.h"
#include "result/summary.h"
#include "run/jitter.h"
#include "run/simulate.h"

namespace rehearse {

namespace {

std::string spread_line(const std::vector<double>& step_times_s) {
  const Spread spread = spread_of(step_times_s);
  return fmt::format("{} iterations: mean {}, standard deviation {}, median {}, 95 % below {}, {} to {}\n",
                     step_times_s.size(), format_seconds(spread.mean_s), format_seconds(spread.deviation_s),
                     format_seconds(spread.median_s), format_seconds(spread.p95_s),
                     format_seconds(spread.least_s), format_seconds(spread.most_s));
}

Json spread_json(const std::vector<double>& step_times_s) {
  const Spread spread = spread_of(step_times_s);
  return {{"count", step_times_s.size()}, {"mean_s", spread.mean_s}, {"deviation_s", spread.deviation_s},
          {"median_s", spread.median_s},  {"p95_s", spread.p95_s},   {"least_s", spread.least_s},
          {"most_s", spread.most_s}};
}

std::string text_of(const ShowOptions& options, const Shown& run, const Json& more,
                    const std::string& last_line) {
  const bool several = run.step_times_s.size() > 1;
  if (!options.json)
    return write_summary(run.report, use_colour(options.colour)) +
           (several ? spread_line(run.step_times_s) : "") + last_line;
  const std::string report = write_report_json(run.report, REHEARSE_VERSION);
  if (!several && more.empty()) return report;
  Json whole = Json::parse(report);
  if (several) whole["iterations"] = spread_json(run.step_times_s);
  whole.update(more);
  return whole.dump(2) + "\n";
}

void write_pictures(const ShowOptions& options, const Shown& run) {
  if (options.svg.empty() && options.png.empty()) return;
  const std::string picture = draw_pipeline(run.timeline, run.schedule, run.report);
  if (!options.svg.empty()) write_file(options.svg, [&](std::ostream& out) { out << picture; });
  if (!options.png.empty()) write_png(options.png, picture);
}

void write_html(const ShowOptions& options, const Shown& run) {
  if (options.html.empty()) return;
  html::RunOrigin origin{REHEARSE_VERSION, command_line(), {}, run.scenario, run.what_if};
  if (run.report.facts.engine == "simgrid") origin.versions["SimGrid"] = simgrid_version();
  const std::string page = html::write_report_page(run.timeline, run.schedule, run.work, run.report, origin);
  write_file(options.html, [&](std::ostream& out) { out << page; });
}

}  // namespace

std::vector<VerbOption> show_options(ShowOptions& options) {
  const auto file = [](const char* name, std::string& path, const char* help) {
    return VerbOption{
        .names = {name}, .target = &path, .help = help, .value = "FILE", .group = HelpGroup::output};
  };
  VerbOption json{{"--json"}, &options.json, "print the report as one JSON object"};
  VerbOption trace = file("--trace", options.trace, "write a Chrome trace (Perfetto opens it)");
  VerbOption svg = file("--svg", options.svg, "write a picture of the pipeline");
  VerbOption png = file("--png", options.png, "the same as PNG, by rsvg-convert");
  VerbOption html = file("--html", options.html, "write everything as one HTML page; needs no network");
  json.group = HelpGroup::output;
  svg.refuse = named_as(".svg");
  png.refuse = named_as(".png");
  png.daily = false;
  html.refuse = named_as(".html");
  return {json, trace, svg, png, html, colour_option(options.colour)};
}

void require_writable(const ShowOptions& options) {
  require_writable({options.trace, options.svg, options.png, options.html},
                   options.json ? Prints::data : Prints::talk);
}

bool draws(const ShowOptions& options) {
  return !(options.trace.empty() && options.svg.empty() && options.png.empty() && options.html.empty());
}

void show_run(const ShowOptions& options, const Shown& run, const Json& more, const std::string& last_line) {
  if (!options.trace.empty()) {
    write_file(options.trace, [&](std::ostream& out) {
      write_chrome_trace(out, run.timeline, run.schedule, run.report, run.work);
    });
  }
  write_pictures(options, run);
  write_html(options, run);
  const std::string text = text_of(options, run, more, last_line);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw std::runtime_error("cannot write to standard output");
}

}  // namespace rehearse
