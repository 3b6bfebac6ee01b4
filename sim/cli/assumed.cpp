#include "cli/assumed.h"

#include <fmt/core.h>

#include <cmath>

#include "plan/frameworks/traits.h"

namespace rehearse {

namespace {

constexpr double kWorthALine = 0.02;
constexpr std::int64_t kMaxOpsOfDefault =
    400'000;  // microbatches x stages; larger runs are not repeated for each default

std::string name_of_flag(const std::string& key) {
  for (const Flag& flag : scenario_flags())
    if (flag.pointer == "/plan/" + key) return flag.name;
  return "plan/" + key;
}

std::string shown_value(double value, bool is_switch) {
  if (is_switch) return value != 0 ? "on" : "off";
  return fmt::format("{:g}", value);
}

double reference_step(Experiment experiment) {
  experiment.engine = Engine::reference;
  experiment.fold = Fold::replicas;
  experiment.conditions = {};
  experiment.with_band = false;
  return run_iteration(experiment).report.step_time_s;
}

}  // namespace

std::vector<AssumedDefault> assumed_defaults(const ScenarioSource& source, const Scenario& scenario) {
  const Experiment& experiment = scenario.experiment;
  const Plan& plan = experiment.plan;
  const Json said = source.json.value("plan", Json::object());
  std::vector<AssumedDefault> found;
  if (plan.microbatches() * plan.stages() > kMaxOpsOfDefault) return found;
  double step = 0;
  const auto own_defaults = traits(plan).own_defaults;
  if (own_defaults == nullptr) return found;
  for (const OwnDefault& own : own_defaults(plan, experiment.model)) {
    if (said.contains(own.key)) continue;
    Experiment changed = experiment;
    own.set(changed.plan);
    if (!broken_rules(changed.plan, changed.model, plan.gpus()).empty()) continue;
    if (step == 0) step = reference_step(experiment);
    const double effect = reference_step(std::move(changed)) / step - 1;
    if (std::abs(effect) > kWorthALine)
      found.push_back({name_of_flag(own.key), shown_value(own.planned, own.is_switch),
                       shown_value(own.own, own.is_switch), effect});
  }
  return found;
}

std::vector<std::string> say_assumed(const std::vector<AssumedDefault>& assumed, Framework framework) {
  std::vector<std::string> lines;
  for (const AssumedDefault& each : assumed)
    lines.push_back(
        fmt::format("{} {} is assumed; {}'s own default is {}, with which the step takes {:.1f} % {}",
                    each.flag, each.value, to_string(framework), each.framework_default,
                    100 * std::abs(each.effect), each.effect > 0 ? "more" : "less"));
  return lines;
}

Json assumed_json(const std::vector<AssumedDefault>& assumed, double step_time_s) {
  Json list = Json::array();
  for (const AssumedDefault& each : assumed)
    list.push_back({{"flag", each.flag},
                    {"value", each.value},
                    {"framework_default", each.framework_default},
                    {"step_time_s", step_time_s * (1 + each.effect)},
                    {"effect", each.effect}});
  return list;
}

}  // namespace rehearse
