#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/data_path.h"
#include "base/error.h"
#include "base/names.h"
#include "base/say.h"
#include "cli/verbs.h"
#include "cli/verdict.h"
#include "cost/kernel_list.h"
#include "result/explain/explain.h"
#include "result/explain/two_orders.h"
#include "run/iteration.h"
#include "scenario/scenario.h"
#include "scenario/schedule_search.h"

namespace rehearse {

namespace {

struct ExplainOptions {
  std::string topic;
  GivenFlags given;
  bool allow_oom = false;
};

void print_topics() {
  say("Topics, explained with the numbers of a plan (rehearse explain TOPIC [SCENARIO.json] [flags]):\n");
  for (const Topic& topic : topics()) say("  {:<10} {}\n", topic.name, topic.question);
}

// Called before any simulation.
void require_topic(const std::string& asked) {
  std::vector<std::string> names;
  for (const Topic& topic : topics()) names.push_back(topic.name);
  if (std::ranges::find(names, asked) != names.end()) return;
  throw InputError({"command line", "TOPIC",
                    fmt::format("there is no such topic; `rehearse explain` lists all {}", names.size()),
                    fmt::format("found \"{}\"", asked), join(similar_names(asked, names))});
}

// The stage whose passes over a microbatch take longest.
int longest_stage(const OpTimes& times) {
  const auto seconds = [](const StageTimes& stage) {
    return stage.forward.total() + stage.backward_input.total() + stage.backward_weight.total();
  };
  return static_cast<int>(std::ranges::max_element(times.stages, {}, seconds) - times.stages.begin());
}

// Differences between the schedule found and the best named one.
std::string beside_named(const Scenario& scenario, const Iteration& found) {
  const FoundSchedule& search = *scenario.found_schedule;
  std::string text = "\n" + in_words(search);
  if (!search.named) return text;
  Experiment named = scenario.experiment;
  named.plan = search.named->plan;
  named.order = search.named->order;
  const Iteration other = run_iteration(named);
  return text + "\n" +
         two_orders({"auto", found.preparation.schedule, found.timeline},
                    {name_in_words(search.named->plan), other.preparation.schedule, other.timeline});
}

// Returns the exit code.
int explain_topic(ExplainOptions options) {
  if (options.topic.empty()) {
    print_topics();
    return kDone;
  }
  require_topic(options.topic);
  if (options.given.file.empty() && !options.given.values.contains("--model")) {
    options.given.file = (data_directory() / "scenarios" / "llama3-70b-512-h100.json").string();
    say(stderr, "note: no scenario given: {}\n", options.given.file);
  }
  const ScenarioSource source = collect(options.given);
  Scenario scenario = read_scenario(source);
  scenario.experiment.engine = Engine::reference;
  Iteration iteration = run_scenario(source, scenario.experiment);
  say_omitted(iteration.report);
  for (const std::string& note : scenario.notes) say(stderr, "note: {}\n", note);
  const int code = judge(source, scenario, options.allow_oom, iteration.report);
  if (!memory_verdict(iteration.report).fits()) say("{}\n\n", verdict_sentence(iteration.report));
  const Experiment& experiment = scenario.experiment;
  const Preparation& ready = iteration.preparation;
  const int stage = longest_stage(ready.prices.times);
  say("{}", explain(options.topic,
                    {iteration.report, ready.work, ready.schedule,
                     kernel_list(ready.work, stage, experiment.plan, experiment.cluster, experiment.profile),
                     stage}));
  if (options.topic == "schedule" && scenario.found_schedule) say("{}", beside_named(scenario, iteration));
  return code;
}

}  // namespace

Verb explain_verb() {
  const auto options = std::make_shared<ExplainOptions>();
  Verb verb{"explain", "explain a term, with formulas and the numbers of this plan"};
  verb.add({{"topic"}, &options->topic, "topic; without it the topics are listed", "[TOPIC]"});
  verb.add_all(scenario_options(options->given));
  verb.add(allow_oom_option(options->allow_oom));
  verb.footer =
      "Exit code 3 when the plan does not fit, unless --allow-oom is given.\n"
      "Examples:\n"
      "  rehearse explain\n"
      "  rehearse explain bubble scenarios/llama3-70b-512-h100.json --gbs 256\n"
      "  rehearse explain memory --model gpt3-175b --cluster selene --tp 8 --pp 8 --gbs 64";
  verb.run = [options] { return explain_topic(*options); };
  return verb;
}

}  // namespace rehearse
