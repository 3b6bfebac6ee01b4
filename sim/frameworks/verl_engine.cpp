// Source: verl-project/verl 08b224a9, verl/trainer/config: ppo_trainer.yaml, ppo_megatron_trainer.yaml,
// actor/megatron_actor.yaml, actor/dp_actor.yaml.
#include "frameworks/verl_engine.h"

#include <string_view>

#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

constexpr std::string_view kActorGroup = "actor@actor_rollout_ref.actor", kEngineGroup = "model_engine";

// "megatron_actor" of the group, or "megatron" of the engines.
std::string strategy_of(std::string name) {
  constexpr std::string_view kEnd = "_actor";
  if (name.ends_with(kEnd)) name.resize(name.size() - kEnd.size());
  return name == "dp" ? "fsdp" : name;
}

// "ppo_megatron_trainer", a whole file of verl's.
std::string engine_of_trainer(const std::string& name) {
  constexpr std::string_view kBegin = "ppo_", kEnd = "_trainer";
  if (name == "ppo_trainer") return "fsdp";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() <= kBegin.size() + kEnd.size())
    return "";
  return name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
}

std::string word_at(const Json& yaml, const std::string& key) {
  const Json* const value = at_path(yaml, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace

std::string verl_engine(const Json& yaml) {
  std::string engine = word_at(yaml, std::string(kEngineGroup)),
              actor = word_at(yaml, std::string(kActorGroup)),
              trainer;  // the first two are words of a script
  const Json defaults = yaml.value("defaults", Json::array());
  if (defaults.is_array())
    for (const Json& entry : defaults) {
      if (entry.is_string() && trainer.empty()) trainer = engine_of_trainer(entry.get<std::string>());
      if (!entry.is_object()) continue;
      for (const auto& [name, value] : entry.items()) {
        std::string group = name.starts_with("override ") ? name.substr(9) : name;
        group.erase(0, group.find_first_not_of('/'));
        if (!value.is_string()) continue;
        if (group == kEngineGroup && engine.empty()) engine = value.get<std::string>();
        if (group == kActorGroup && actor.empty()) actor = value.get<std::string>();
      }
    }
  if (!actor.empty() && actor.find('$') == std::string::npos) return strategy_of(actor);
  return engine.empty() ? trainer : strategy_of(engine);
}

}  // namespace rehearse
