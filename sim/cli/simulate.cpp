#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/json_reader.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/scenario.h"
#include "cli/verbs.h"
#include "result/chrome_trace.h"
#include "result/report_json.h"
#include "result/summary.h"
#include "result/svg/pipeline.h"
#include "run/iteration.h"
#include "run/jitter.h"
#include "schedule/check.h"

namespace rehearse {

namespace {

struct SimulateOptions {
  GivenFlags given;
  bool json = false;
  std::string trace, svg;
  Colour colour = Colour::automatic;
};

std::string with_spread(const std::string& report, const std::vector<double>& step_times_s, bool json) {
  const Spread spread = spread_of(step_times_s);
  if (!json)
    return report + fmt::format("{} iterations: mean {}, deviation {}, median {}, 95 % below {}, {} to {}\n",
                                step_times_s.size(), format_seconds(spread.mean_s),
                                format_seconds(spread.deviation_s), format_seconds(spread.median_s),
                                format_seconds(spread.p95_s), format_seconds(spread.least_s),
                                format_seconds(spread.most_s));
  Json whole = Json::parse(report);
  whole["iterations"] = {
      {"count", step_times_s.size()}, {"mean_s", spread.mean_s}, {"deviation_s", spread.deviation_s},
      {"median_s", spread.median_s},  {"p95_s", spread.p95_s},   {"least_s", spread.least_s},
      {"most_s", spread.most_s}};
  return whole.dump(2) + "\n";
}

void simulate_and_show(const SimulateOptions& options) {
  const Scenario scenario = read_scenario(collect(options.given));
  Iteration iteration = run_iteration(scenario.experiment);
  Report& report = iteration.report;
  report.facts.warnings.insert(report.facts.warnings.end(), scenario.notes.begin(), scenario.notes.end());
  const Preparation& ready = iteration.preparation;
  if (!options.trace.empty()) {
    write_file(options.trace, [&](std::ostream& out) {
      write_chrome_trace(out, iteration.timeline, ready.schedule, report, ready.work);
    });
  }
  if (!options.svg.empty()) {
    write_file(options.svg,
               [&](std::ostream& out) { out << draw_pipeline(iteration.timeline, ready.schedule, report); });
  }
  std::string text = options.json ? write_report_json(report, REHEARSE_VERSION)
                                  : write_summary(report, use_colour(options.colour));
  if (iteration.step_times_s.size() > 1) text = with_spread(text, iteration.step_times_s, options.json);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw std::runtime_error("cannot write to standard output");
  }
}

}  // namespace

void add_simulate(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("simulate", "one iteration, simulated; prints where the time goes");
  const auto options = std::make_shared<SimulateOptions>();
  add_scenario_flags(*verb, options->given);
  verb->add_flag("--json", options->json, "print the report as one JSON object");
  verb->add_option("--trace", options->trace, "write a Chrome trace (Perfetto opens it)")
      ->option_text("FILE");
  verb->add_option("--svg", options->svg, "write a picture of the pipeline")->option_text("FILE");
  add_colour_flag(*verb, options->colour);
  verb->footer(
      "Examples:\n"
      "  rehearse simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 8 --pp 2 --gbs 32\n"
      "  rehearse simulate scenarios/llama3-70b-512-h100.json --svg pipeline.svg --trace trace.json\n"
      "  rehearse simulate scenarios/llama3-70b-512-h100.json --mbs 2 --json");
  verb->callback([options, &exit_code] {
    simulate_and_show(*options);
    exit_code = kDone;
  });
}

}  // namespace rehearse
