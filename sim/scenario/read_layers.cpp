#include "scenario/read_layers.h"

#include <algorithm>
#include <limits>

#include "plan/frameworks/traits.h"
#include "plan/layer_split.h"

namespace rehearse {

namespace {

constexpr int kLastLayer = std::numeric_limits<int>::max();

std::vector<int> listed(const JsonReader& json) {
  const Json& list = json.value("layers_per_stage");
  const std::string rule = "must be \"auto\" or an array of integers from 0";
  if (!list.is_array()) json.fail("layers_per_stage", rule, "found " + list.dump());
  std::vector<int> layers;
  for (const Json& entry : list) {
    if (!entry.is_number_integer() || entry < 0 || entry > kLastLayer)
      json.fail("layers_per_stage", rule, "found " + entry.dump());
    layers.push_back(entry.get<int>());
  }
  return layers;
}

// The first given key of each way to split; the ways exclude each other.
std::string only_way(const JsonReader& json) {
  const std::vector<std::vector<std::string>> ways = {{"layers_per_stage"},
                                                      {"layout"},
                                                      {"first_rank_layers", "last_rank_layers"},
                                                      {"embedding_as_layer", "loss_as_layer"}};
  std::string found;
  for (const auto& way : ways) {
    std::string first;
    for (const std::string& key : way)
      if (json.has(key) && first.empty() && json.value(key) != Json(false)) first = key;
    if (first.empty()) continue;
    if (!found.empty()) json.fail(first, "layers are split in one way only", "given beside " + found);
    found = first;
  }
  return found;
}

std::vector<int> split(const std::string& way, const JsonReader& json, const Model& model, const Plan& plan) {
  if (way == "layers_per_stage") return listed(json);
  if (way == "layout") return parse_layout(json.text("layout"), model);
  if (way.ends_with("_rank_layers")) {
    const auto end = [&](const std::string& key) {
      return static_cast<int>(json.integer_or(key, -1, 0, kLastLayer));
    };
    return split_with_ends(model.layers, plan, end("first_rank_layers"), end("last_rank_layers"));
  }
  return split_with_embedding(model.layers, plan, json.boolean_or("embedding_as_layer", false),
                              json.boolean_or("loss_as_layer", false));
}

// The framework's own split, where the user gives none.
void split_as_framework(const Model& model, Plan& plan) {
  if (plan.pp <= 1 || plan.vpp != 1) return;
  if (traits(plan).layer_split == LayerSplit::at_shares) plan.layers_per_stage = split_at_shares(model, plan);
  if (traits(plan).layer_split == LayerSplit::by_parameters)
    plan.layers_per_stage = split_by_parameters(model, plan);
}

}  // namespace

bool read_layers(const JsonReader& json, const Model& model, Plan& plan) {
  const std::string way = only_way(json);
  const bool by_cost = way == "layers_per_stage" && json.value(way) == Json("auto");
  if (way.empty() || by_cost) {
    split_as_framework(model, plan);
    return by_cost;
  }
  if (plan.pp < 1 || plan.vpp < 1) return false;  // broken_rules() reports it
  try {
    plan.layers_per_stage = split(way, json, model, plan);
  } catch (const InputError& error) {
    const Violation& violation = error.violations().front();
    if (violation.pointer.starts_with("/")) throw;  // the reader has given the place
    json.fail(violation.pointer, violation.rule, violation.values, violation.nearest);
  }
  const auto stages = static_cast<int>(plan.layers_per_stage.size());
  if (way == "layout" && !json.has("vpp") && stages % plan.pp == 0) plan.vpp = stages / plan.pp;
  return false;
}

}  // namespace rehearse
