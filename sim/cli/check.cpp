#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "base/quantity.h"
#include "base/say.h"
#include "cli/verbs.h"
#include "cli/verdict.h"
#include "run/iteration.h"
#include "run/long_step.h"
#include "scenario/scenario.h"
#include "schedule/check.h"

namespace rehearse {

namespace {

void require_sound(const Schedule& schedule, const Plan& plan) {
  std::vector<Violation> violations;
  for (const std::string& sentence : check_schedule(schedule, plan)) {
    violations.push_back({"", "schedule", sentence, "", ""});
  }
  if (!violations.empty()) throw InputError(std::move(violations));
}

// Returns the exit code.
int check(const GivenFlags& given) {
  const ScenarioSource source = collect(given);
  Scenario scenario = read_scenario(source);
  scenario.experiment.engine = Engine::reference;
  scenario.experiment.memory_only = true;
  Iteration iteration = run_scenario(source, scenario.experiment);
  const Schedule& schedule = iteration.preparation.schedule;
  require_sound(schedule, with_microbatches(scenario.experiment, schedule.microbatches).plan);
  Report& report = iteration.report;
  say_omitted(report);
  for (const std::string& note : scenario.notes) say(stderr, "note: {}\n", note);
  const int code = judge(source, scenario, false, report);
  if (code == kDoesNotFit) {
    const Footprint gpu = fullest_gpu(report);
    const RankMemory& rank = report.memory[static_cast<std::size_t>(gpu.rank)];
    throw DoesNotFit(
        fmt::format("does not fit in memory, {}: {} (of the peak: parameters {}, gradients {}, optimizer {}, "
                    "activations {}, logits {}, buffers {}); {}",
                    room_in_words(gpu), in_words(gpu), format_bytes(rank.parameters_bytes),
                    format_bytes(rank.gradients_bytes), format_bytes(rank.optimizer_bytes),
                    format_bytes(rank.activations_bytes), format_bytes(rank.logits_bytes),
                    format_bytes(rank.buffers_bytes), report.facts.way_to_fit));
  }
  say("legal; the schedule has no deadlock{}; {}\n{}\n",
      report.extrapolation ? fmt::format(" in its first {} microbatches, of which the rest are repetitions",
                                         schedule.microbatches)
                           : "",
      in_words(fullest_gpu(report)), verdict_sentence(report));
  return code;
}

}  // namespace

Verb check_verb() {
  const auto given = std::make_shared<GivenFlags>();
  Verb verb{"check", "check all rules and the memory of a plan, without a simulation"};
  verb.add_all(scenario_options(*given));
  verb.footer =
      "Examples:\n"
      "  rehearse check scenarios/llama3-70b-512-h100.json\n"
      "  rehearse check --model llama3-70b --cluster dgx-h100 --gpus 512 --tp 8 --pp 16 --vpp 2 --gbs 1024\n"
      "  rehearse check --model gpt3-175b --cluster selene --gpus 64 --tp 8 --pp 8 --gbs 64 --recompute "
      "full";
  verb.run = [given] { return check(*given); };
  return verb;
}

}  // namespace rehearse
