#include <fmt/core.h>

#include <memory>

#include "base/progress.h"
#include "base/quantity.h"
#include "base/say.h"
#include "cli/assumed.h"
#include "cli/output.h"
#include "cli/show_run.h"
#include "cli/verbs.h"
#include "cli/verdict.h"
#include "cli/what_if.h"
#include "run/concurrent_jobs.h"
#include "run/fit.h"
#include "run/iteration.h"
#include "run/jitter.h"
#include "run/size.h"
#include "scenario/scenario.h"
#include "scenario/schedule_search.h"

namespace rehearse {

namespace {

struct SimulateOptions {
  GivenFlags given;
  ShowOptions show;
  std::string beside;  // file of another job's scenario
  bool allow_oom = false;
};

// Describes the slow part of simulating a long pipeline.
std::string in_words_of(const Plan& plan) {
  return fmt::format("simulating {} microbatches on {} pipeline rank{}", plan.microbatches(), plan.pp,
                     plan.pp == 1 ? "" : "s");
}

// Returns the exit code.
int show(const SimulateOptions& options, const ScenarioSource& source, const Scenario& scenario,
         Iteration& iteration, Json more = Json::object(), std::string last_line = "") {
  std::vector<std::string>& warnings = iteration.report.facts.warnings;
  warnings.insert(warnings.end(), scenario.notes.begin(), scenario.notes.end());
  const std::vector<AssumedDefault> assumed = assumed_defaults(source, scenario);
  for (std::string& line : say_assumed(assumed, scenario.experiment.plan.framework))
    warnings.push_back(std::move(line));
  more["assumed"] = assumed_json(assumed, iteration.report.step_time_s);
  if (scenario.found_schedule) {
    more["schedule_search"] = to_json(*scenario.found_schedule, *scenario.schedule_search);
    last_line += in_words(*scenario.found_schedule);
  }
  const int code = judge(source, scenario, options.allow_oom, iteration.report);
  const MemoryVerdict verdict = memory_verdict(iteration.report);
  if (options.show.json && (!verdict.fits() || !verdict.is_decided()))
    say(stderr, "rehearse: {}\n", verdict_sentence(iteration.report));
  const Preparation& ready = iteration.preparation;
  show_run(options.show,
           {iteration.timeline, ready.schedule, ready.work, iteration.report, iteration.step_times_s,
            source.json, options.show.html.empty() ? Json() : what_if(source, scenario)},
           more, last_line);
  return code;
}

int simulate_beside(const SimulateOptions& options, const ScenarioSource& source, const Scenario& scenario) {
  const Scenario other = read_scenario(collect({options.beside}));
  ConcurrentRun both = run_concurrently(scenario.experiment, other.experiment);
  const Spread steps = spread_of(both.other_step_times_s);
  const Json more = {{"beside",
                      {{"scenario", options.beside},
                       {"steps", both.other_step_times_s.size()},
                       {"mean_step_time_s", steps.mean_s}}}};
  const int code = show(options, source, scenario, both.own, more,
                        fmt::format("concurrent job {} on {} more GPUs: {} steps, {} each\n", options.beside,
                                    other.experiment.plan.gpus(), both.other_step_times_s.size(),
                                    format_seconds(steps.mean_s)));
  const MemoryVerdict others = memory_verdict(footprints_of(other.experiment), other.experiment.headroom);
  if (others.fits()) return code;
  say(stderr, "rehearse: {} {}\n", options.beside, in_words(others));
  return options.allow_oom ? code : kDoesNotFit;
}

int simulate_and_show(const SimulateOptions& options) {
  const ScenarioSource source = collect(options.given);
  require_writable(options.show);
  Scenario scenario = read_scenario(source);
  scenario.experiment.every_microbatch = draws(options.show);
  if (!options.show.html.empty()) scenario.experiment.output = kPageCost;
  if (!options.beside.empty()) return simulate_beside(options, source, scenario);
  Iteration iteration = [&] {
    const Activity busy(in_words_of(scenario.experiment.plan));
    return run_scenario(source, scenario.experiment);
  }();
  return show(options, source, scenario, iteration);
}

}  // namespace

Verb simulate_verb() {
  const auto options = std::make_shared<SimulateOptions>();
  Verb verb{"simulate", "simulate one iteration and print where the time goes"};
  verb.add_all(scenario_options(options->given));
  verb.add({.names = {"--beside"},
            .target = &options->beside,
            .help = "concurrent job on the same fabric, on the next nodes of the placement",
            .value = "SCENARIO.json",
            .group = HelpGroup::imperfections,
            .daily = false});
  verb.add(allow_oom_option(options->allow_oom));
  verb.add_all(show_options(options->show));
  verb.footer =
      "Exit code 3 when it does not fit, unless --allow-oom is given.\n"
      "Examples:\n"
      "  rehearse simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 8 --pp 2 --gbs 32\n"
      "  rehearse simulate scenarios/llama3-70b-512-h100.json --mbs 2 --html report.html";
  verb.run = [options] { return simulate_and_show(*options); };
  return verb;
}

}  // namespace rehearse
