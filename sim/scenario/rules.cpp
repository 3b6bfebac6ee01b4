#include "scenario/rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "plan/rules/root_causes.h"
#include "run/layer_choice.h"

namespace rehearse {

namespace {

std::string pointer_of_field(const std::string& field) {
  return (field == "gpus" ? "/" : "/plan/") + field;
}

const Flag* flag_of_field(const std::string& field) {
  const std::string pointer = pointer_of_field(field);
  for (const Flag& flag : scenario_flags())
    if (flag.pointer == pointer) return &flag;
  return nullptr;
}

ScenarioSource with_settings(ScenarioSource source, const Settings& settings) {
  for (const Setting& setting : settings) {
    const Flag* const flag = flag_of_field(setting.field);
    if (flag == nullptr) throw InputError({"", setting.field, "has no flag", "", ""});
    source.json[Json::json_pointer(flag->pointer)] = parse_value(*flag, setting.value);
    source.flag_of[flag->pointer] = flag->name;
  }
  return source;
}

}  // namespace

std::vector<BrokenRule> unmet_rules(const Scenario& scenario) {
  const Experiment& experiment = scenario.experiment;
  Plan plan = experiment.plan;
  if (scenario.splits_by_cost && plan.pp >= 1 && plan.vpp >= 1)
    plan.layers_per_stage = any_split(plan, experiment.model);
  std::vector<BrokenRule> broken = unmet_rules(plan, experiment.model, scenario.gpus);
  const Cluster& cluster = experiment.cluster;
  const std::int64_t most = std::int64_t{cluster.max_nodes} * cluster.node.gpus;
  if (cluster.max_nodes > 0 && scenario.gpus > most) {
    const std::int64_t replica = std::max<std::int64_t>(1, std::int64_t{plan.tp} * plan.cp * plan.pp);
    broken.push_back({"", "gpus", fmt::format("cluster {} has fewer GPUs", cluster.name),
                      fmt::format("{} requested, {} available", scenario.gpus, most),
                      multiples_near("gpus", most, most, replica)});
  }
  return broken;
}

void require_rules(const Scenario& scenario, const ScenarioSource& source, const Replaced& replaced) {
  const std::vector<BrokenRule> broken = unmet_rules(scenario);
  if (broken.empty()) return;
  Inputs own;
  Replaced tried;
  tried.model = replaced.model;
  tried.inputs = replaced.inputs != nullptr ? replaced.inputs : &own;
  tried.without_profile = tried.without_rules = true;
  const Probe probe = [&](const Settings& settings) -> std::optional<std::vector<BrokenRule>> {
    try {
      return unmet_rules(read_scenario(with_settings(source, settings), tried));
    } catch (const InputError&) {
      return std::nullopt;
    }
  };
  const FieldName name = [&](const std::string& field) {
    const Flag* const flag = flag_of_field(field);
    const bool by_flag = flag != nullptr && (source.file.empty() || source.flag_of.contains(flag->pointer));
    return by_flag ? flag->name.substr(2) : field;
  };
  std::vector<Violation> violations = root_causes(broken, probe, name);
  for (Violation& violation : violations) {
    violation.pointer = pointer_of_field(violation.pointer);
    violation.file = source.file;
  }
  throw InputError(std::move(violations));
}

}  // namespace rehearse
