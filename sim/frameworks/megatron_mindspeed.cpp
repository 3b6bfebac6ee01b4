#include "frameworks/megatron_mindspeed.h"

#include <fmt/core.h>

#include <charconv>
#include <sstream>

namespace rehearse {

namespace {

// MindSpeed, mindspeed/features_manager/context_parallel/context_parallel_feature.py.
void add_context(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes) {
  if (!flags.has("--context-parallel-algo") || flags.has("--cp-comm-type")) return;
  const std::string name = flags.text("--context-parallel-algo");
  const char* const exchange = name == "ulysses_cp_algo"       ? "a2a"
                               : name == "kvallgather_cp_algo" ? "allgather"
                                                               : "p2p";
  plan["cp_comm_type"] = exchange;
  if (name != "megatron_cp_algo" && name != "ulysses_cp_algo" && name != "kvallgather_cp_algo")
    notes.push_back(fmt::format("--context-parallel-algo {} is modelled as {}", name, exchange));
}

// Stages that differ by one layer at most; "" of more than a message shows.
std::string equal_stages(const MegatronFlags& flags) {
  constexpr std::int64_t kShown = 64;
  const std::int64_t stages = flags.integer_or("--pipeline-model-parallel-size", 1);
  const std::int64_t layers = flags.integer_or("--num-layers", 0);
  std::string list;
  for (std::int64_t stage = 0; stages <= kShown && layers >= stages && stage < stages; ++stage)
    list += fmt::format("{}{}", list.empty() ? "" : ",", layers / stages + (stage < layers % stages ? 1 : 0));
  return list;
}

// "6,8,8,6": layers of each stage.
void add_layers(const MegatronFlags& flags, Json& plan) {
  constexpr const char* kName = "--num-layer-list";
  if (!flags.has(kName)) return;
  Json layers = Json::array();
  std::istringstream parts(flags.text(kName));
  for (std::string part; std::getline(parts, part, ',');) {
    int count = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (error != std::errc() || end != part.data() + part.size() || count < 0)
      flags.fail(kName, "must list the layers of each stage", equal_stages(flags));
    layers.push_back(count);
  }
  plan["layers_per_stage"] = layers;
}

}  // namespace

void add_mindspeed(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes) {
  add_context(flags, plan, notes);
  add_layers(flags, plan);
  if (flags.has("--schedules-method")) plan["schedule"] = "dualpipe-v";
}

}  // namespace rehearse
