#include "run.h"

#include <cstdlib>
#include <numeric>

#include "../run/in_child.h"
#include "coverage.h"
#include "run/jitter.h"
#include "run/reference.h"
#include "run/simulate.h"
#include "schedule/check.h"
#include "scratch.h"

namespace rehearse::properties {

namespace {

// The same few runs every time, unless RC_PARAMS asks for others (tools/properties).
[[maybe_unused]] const int kShortForm = setenv("RC_PARAMS", "max_success=200 seed=1", 0);

constexpr unsigned kLongestSimulation = 60;  // seconds; the largest of these runs take a tenth of one

std::string rule_of(const InputError& error) {
  const Violation& violation = error.violations().front();
  return violation.pointer + ": " + violation.rule;
}

constexpr std::size_t kSpanNumbers = 2, kLostNumbers = 4;

std::vector<double> flat(const Timeline& timeline) {
  std::vector<double> numbers;
  for (const TimelineRank& rank : timeline.ranks) {
    for (const Span& span : rank.spans) numbers.insert(numbers.end(), {span.begin, span.end});
    numbers.push_back(rank.lost.empty() ? 0 : 1);
    for (const TimeParts& parts : rank.lost)
      numbers.insert(numbers.end(), {parts.tp, parts.cp, parts.ep, parts.compute});
  }
  return numbers;
}

Timeline unflat(const std::vector<double>& numbers, const Schedule& schedule, const Tasks& tasks) {
  Timeline timeline;
  auto next = numbers.begin();
  for (const Instance& instance : tasks.instances) {
    TimelineRank rank{instance, {}};
    const std::size_t ops = schedule.ranks[static_cast<std::size_t>(instance.pipeline_rank)].size();
    for (std::size_t op = 0; op < ops; ++op, next += kSpanNumbers) rank.spans.push_back({next[0], next[1]});
    if (*next++ != 0) {
      for (std::size_t op = 0; op < ops; ++op, next += kLostNumbers) {
        TimeParts& parts = rank.lost.emplace_back();
        parts.tp = next[0];
        parts.cp = next[1];
        parts.ep = next[2];
        parts.compute = next[3];
      }
    }
    timeline.ranks.push_back(std::move(rank));
  }
  return timeline;
}

}  // namespace

ScenarioSource source_of(const Drawn& drawn) {
  ScenarioSource source{"", drawn.scenario, {}};
  source.json["model"] = scratch().write("model.json", drawn.config.dump(2));
  return source;
}

Experiment read(const ScenarioSource& source) {
  static Inputs inputs;
  Replaced replaced;
  replaced.model = Inputs().model(source.json.at("model").get<std::string>());
  replaced.inputs = &inputs;
  return read_scenario(source, replaced).experiment;
}

Preparation prepared(const Experiment& experiment, Loads& first_loads) {
  Preparation ready = prepare(experiment);
  const Conditions& conditions = experiment.conditions;
  first_loads = conditions.has_jitter() ? jittered(ready.loads, conditions, 0) : ready.loads;
  return ready;
}

std::unique_ptr<const Run> legal_run(const Drawn& drawn) {
  auto run = std::make_unique<Run>();
  run->drawn = drawn;
  try {
    run->source = source_of(drawn);
    run->experiment = read(run->source);
    run->ready = prepared(run->experiment, run->loads);
  } catch (const InputError& error) {
    coverage().discarded(rule_of(error));
    return nullptr;
  }
  run->reference = reference(run->ready.schedule, run->ready.tasks, run->loads);
  for (const std::string& fault : check_schedule(run->ready.schedule, run->experiment.plan))
    RC_FAIL("the schedule of a plan that breaks no rule is at fault: " + fault);
  coverage().taken(drawn, run->experiment);
  return run;
}

std::unique_ptr<const Run> legal_run() {
  const Drawn drawn = *any_run();
  std::unique_ptr<const Run> run = legal_run(drawn);
  if (!run) RC_DISCARD("illegal");
  return run;
}

double longest_path_s(Experiment experiment) {
  experiment.engine = Engine::reference;
  Loads loads;
  const Preparation ready = prepared(experiment, loads);
  return reference(ready.schedule, ready.tasks, loads).end();
}

std::optional<Timeline> simulated(const Schedule& schedule, const Tasks& tasks, const Loads& loads) {
  const auto numbers = in_child([&] {
    alarm(kLongestSimulation);
    return flat(simulate(schedule, tasks, loads));
  });
  if (!numbers) return std::nullopt;
  return unflat(*numbers, schedule, tasks);
}

std::optional<Timeline> simulated(const Run& run) {
  return simulated(run.ready.schedule, run.ready.tasks, run.loads);
}

}  // namespace rehearse::properties
