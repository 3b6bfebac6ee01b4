#include <memory>

#include "cli/scenario.h"
#include "cli/show_run.h"
#include "cli/verbs.h"
#include "cli/what_if.h"
#include "run/iteration.h"

namespace rehearse {

namespace {

struct SimulateOptions {
  GivenFlags given;
  ShowOptions show;
};

void simulate_and_show(const SimulateOptions& options) {
  const ScenarioSource source = collect(options.given);
  const Scenario scenario = read_scenario(source);
  Iteration iteration = run_iteration(scenario.experiment);
  std::vector<std::string>& warnings = iteration.report.facts.warnings;
  warnings.insert(warnings.end(), scenario.notes.begin(), scenario.notes.end());
  const Preparation& ready = iteration.preparation;
  show_run(options.show,
           {iteration.timeline, ready.schedule, ready.work, iteration.report, iteration.step_times_s,
            source.json, options.show.html.empty() ? Json() : what_if(source, scenario)});
}

}  // namespace

void add_simulate(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("simulate", "one iteration, simulated; prints where the time goes");
  const auto options = std::make_shared<SimulateOptions>();
  add_scenario_flags(*verb, options->given);
  add_show_flags(*verb, options->show);
  verb->footer(
      "Examples:\n"
      "  rehearse simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 8 --pp 2 --gbs 32\n"
      "  rehearse simulate scenarios/llama3-70b-512-h100.json --svg pipeline.svg --trace trace.json\n"
      "  rehearse simulate scenarios/llama3-70b-512-h100.json --html report.html\n"
      "  rehearse simulate scenarios/llama3-70b-512-h100.json --mbs 2 --json");
  verb->callback([options, &exit_code] {
    simulate_and_show(*options);
    exit_code = kDone;
  });
}

}  // namespace rehearse
