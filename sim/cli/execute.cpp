#include "execute/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <thread>

#include "base/units.h"
#include "cli/scenario.h"
#include "cli/show_run.h"
#include "cli/verbs.h"
#include "run/iteration.h"

namespace rehearse {

namespace {

constexpr int kUsualIterations = 5;

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int /*signal*/) {
  interrupted = 1;
}

struct ExecuteVerb {
  GivenFlags given;
  ShowOptions show;
  std::string device = "cpu";
  int warmup = 2;
  double timeout_s = 60;
};

// The plan can be run here, under the conditions that are asked for.
void require_executable(const Experiment& experiment, const ScenarioSource& source) {
  std::vector<Violation> found = not_executable(experiment.model, experiment.plan);
  for (Violation& violation : found)
    violation.pointer = (violation.pointer == "model" ? "/" : "/plan/") + violation.pointer;
  const Conditions& conditions = experiment.conditions;
  if (!conditions.slow.empty())
    found.push_back({"", "/slow", "what is executed is as fast as it is", "slow ranks or links", "none"});
  if (conditions.has_jitter())
    found.push_back({"", "/jitter", "what is executed has its own jitter", "jitter", "none"});
  if (!experiment.stage_nodes.empty())
    found.push_back({"", "/stage_nodes", "ranks are executed on one kind of node", "stage nodes", "none"});
  if (found.empty()) return;
  for (Violation& violation : found) violation = in_users_words(std::move(violation), source);
  throw InputError(std::move(found));
}

// All ranks share the memory of this machine.
void require_memory(const Report& predicted) {
  double needed = 0;
  for (const RankMemory& rank : predicted.memory)
    needed += rank.peak_bytes * predicted.plan.tp * predicted.plan.dp;
  const double there = kernels::open_cpu()->facts().memory_bytes;
  if (needed > there)
    throw DoesNotFit(fmt::format("{} ranks need {} together; this machine has {}", predicted.plan.gpus(),
                                 format_bytes(needed), format_bytes(there)));
}

Report report_of(const Experiment& experiment, const Iteration& predicted, const Execution& execution,
                 const std::vector<std::string>& notes) {
  RunFacts facts = predicted.report.facts;
  facts.source = "execute";
  facts.engine = "cpu";
  const unsigned cores = std::thread::hardware_concurrency();
  const int ranks = experiment.plan.gpus();
  if (ranks > static_cast<int>(cores))
    facts.warnings.push_back(
        fmt::format("{} ranks share {} cores: times are not those of a machine with a "
                    "core for each",
                    ranks, cores));
  facts.warnings.emplace_back(
      "memory is predicted, and a compute op's time divided among its causes as the profile has them");
  facts.warnings.insert(facts.warnings.end(), notes.begin(), notes.end());
  const Preparation& ready = predicted.preparation;
  return make_report(execution.timeline, ready.schedule, experiment.model, experiment.plan, ready.work,
                     ready.prices.times, facts);
}

void run_and_show(const ExecuteVerb& verb) {
  const ScenarioSource source = collect(verb.given);
  Scenario scenario = read_scenario(source);
  Experiment& experiment = scenario.experiment;
  require_executable(experiment, source);
  ExecuteOptions options;
  options.warmup = verb.warmup;
  options.iterations =
      source.json.contains("iterations") ? experiment.conditions.iterations : kUsualIterations;
  options.watch = {verb.timeout_s, [] { return interrupted != 0; }};
  experiment.engine = Engine::reference;
  experiment.conditions.iterations = 1;
  const Iteration predicted = run_iteration(experiment);
  require_memory(predicted.report);
  const Preparation& ready = predicted.preparation;
  const Execution execution = execute(
      {experiment.model, experiment.plan, ready.work, ready.schedule, experiment.conditions.seed}, options);
  const Report report = report_of(experiment, predicted, execution, scenario.notes);
  const Json more = {{"execution",
                      {{"losses", execution.losses},
                       {"step_times_s", execution.step_times_s},
                       {"peak_activation_bytes_by_rank", execution.peak_activation_bytes}}}};
  show_run(verb.show,
           {execution.timeline, ready.schedule, ready.work, report, execution.step_times_s, source.json},
           more,
           fmt::format("loss {:.4f} in the first step, {:.4f} in the last of {}; predicted step time {}\n",
                       execution.losses.front(), execution.losses.back(), execution.losses.size(),
                       format_seconds(predicted.report.step_time_s)));
}

int execute_verb(const ExecuteVerb& verb) {
  if (verb.device != "cpu")
    throw MissingCalibration("plans are executed on the CPU only so far: --device cpu");
  std::signal(SIGINT, on_interrupt);
  try {
    run_and_show(verb);
    return kDone;
  } catch (const Interrupted& end) {
    fmt::print(stderr, "rehearse: {}\n", end.what());
    return kInterrupted;
  }
}

}  // namespace

void add_execute(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("execute", "the same schedule on hardware: trains for real");
  const auto options = std::make_shared<ExecuteVerb>();
  add_scenario_flags(*verb, options->given);
  verb->add_option("--device", options->device, "what to run on")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->option_text("cpu|cuda");
  verb->add_option("--warmup", options->warmup, "steps before the --iterations (5) that are counted")
      ->check(CLI::Range(0, 1000000))
      ->option_text("N");
  verb->add_option("--timeout", options->timeout_s, "end the run when no op ends for so many seconds")
      ->check(CLI::Range(0.001, 86400.0))
      ->option_text("S");
  add_show_flags(*verb, options->show);
  verb->footer(
      "Examples:\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --device cpu\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --schedule gpipe --iterations 10 --svg gpipe.svg\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --pp 1 --tp 2 --sequence-parallel on --json");
  verb->callback([options, &exit_code] { exit_code = execute_verb(*options); });
}

}  // namespace rehearse
