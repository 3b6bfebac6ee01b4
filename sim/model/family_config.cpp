#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/family.h"

namespace rehearse {

namespace {

// Parts that only a family's row gives, unless the row names a key of the file for one. Otherwise a key of
// that name in the file means something else.
constexpr std::array<std::string_view, 69> kOfRow = {"activation",
                                                     "activation_weights",
                                                     "adjusts_ffn",
                                                     "attention_gate",
                                                     "attention_out_bias",
                                                     "attention_sinks",
                                                     "bidirectional",
                                                     "blocks",
                                                     "compressed",
                                                     "depth_block",
                                                     "dropouts",
                                                     "embedding_norm",
                                                     "encoder",
                                                     "experts",
                                                     "experts_latent",
                                                     "experts_own_norms",
                                                     "ffn_multiple",
                                                     "ffn_multiples_of_layers",
                                                     "full_rank_gate",
                                                     "gates_heads",
                                                     "half_ffn",
                                                     "head_bias",
                                                     "head_transform",
                                                     "heads_of_layers",
                                                     "index_block",
                                                     "index_marks",
                                                     "indexer",
                                                     "inner_norms",
                                                     "kda_layers",
                                                     "kv_heads_of_layers",
                                                     "latent",
                                                     "latent_norm",
                                                     "listed_shapes",
                                                     "mamba_beside_attention",
                                                     "mamba_norm",
                                                     "mixers_alone",
                                                     "mlp_bias",
                                                     "moe_linear_bias",
                                                     "mtp",
                                                     "norm_place",
                                                     "normalization",
                                                     "own_attention_sinks",
                                                     "own_head_dim",
                                                     "own_num_attention_heads",
                                                     "own_num_key_value_heads",
                                                     "own_shape",
                                                     "own_v_head_dim",
                                                     "own_values_are_keys",
                                                     "parallel_residual",
                                                     "per_layer_parts",
                                                     "position_embedding_type",
                                                     "position_offset",
                                                     "qk_layernorm",
                                                     "qk_norm_plain",
                                                     "qk_norm_span",
                                                     "qkv_bias",
                                                     "recurrence",
                                                     "relative_positions_of_layers",
                                                     "rotary",
                                                     "router_bias",
                                                     "shared_expert_gate",
                                                     "sparse_marks",
                                                     "type_vocab_size",
                                                     "value_head_dim",
                                                     "value_norm",
                                                     "values_are_keys",
                                                     "window_in_chunks",
                                                     "window_marks",
                                                     "windows"};

std::string name_in(const Json& names, const Json& config, const std::string& part) {
  const auto found = names.find(part);
  if (found == names.end()) return part;
  if (found->is_string()) return found->get<std::string>();
  for (const Json& name : *found)
    if (config.contains(name.get<std::string>())) return name.get<std::string>();
  return found->front().get<std::string>();
}

// Replaces an array with the same value for each layer by that value.
void join_layers(const JsonReader& file, const ModelFamily& family, Json& json) {
  for (const Json& name : family.per_layer) {
    const std::string key = name.get<std::string>();
    if (!json.contains(key) || !json[key].is_array() || json[key].empty()) continue;
    const Json values = json[key];
    if (std::ranges::any_of(values, [&](const Json& value) { return value != values.front(); }))
      file.fail(key, "must be the same in every layer", "found " + values.dump());
    json[key] = values.front();
  }
}

// Copies keys of nested objects, which rows name as "ffn_config/moe_top_k", to the top level.
void lift_nested(const ModelFamily& family, Json& json) {
  for (const auto& [part, name] : family.names.items()) {
    if (!name.is_string() || name.get_ref<const std::string&>().find('/') == std::string::npos) continue;
    const std::string path = name.get<std::string>();
    const std::string outer = path.substr(0, path.find('/')), inner = path.substr(path.find('/') + 1);
    if (json.contains(outer) && json[outer].is_object() && json[outer].contains(inner))
      json[path] = json[outer][inner];
  }
}

JsonReader with_defaults(const JsonReader& file, const ModelFamily& family) {
  Json json = file.json();
  lift_nested(family, json);
  for (const auto& [part, value] : family.absent.items()) {
    const std::string name = name_in(family.names, json, part);
    if (!json.contains(name)) json[name] = value;
  }
  join_layers(file, family, json);
  return JsonReader(std::move(json), file.file(), file.pointer());
}

}  // namespace

FamilyConfig::FamilyConfig(const JsonReader& file, const ModelFamily& family)
    : family_(family),
      file_(with_defaults(file, family)),
      implied_(family.implied),
      row_(Json::object(), kFamilyRows, "/" + family.model_type) {
  file_.has("model_type");  // it chose the family
  file_.has("architectures");
  require_known();
  take_cases();
  row_ = JsonReader(implied_, kFamilyRows, "/" + family.model_type + "/implied");
}

void FamilyConfig::take_cases() {
  for (const Json& rule : family_.cases) {
    const auto holds = [&](const auto& where) {
      return file_.has(where.key()) ? file_.value(where.key()) == where.value() : where.value().is_null();
    };
    bool all = true;
    for (auto where = rule["where"].begin(); where != rule["where"].end(); ++where) all = all && holds(where);
    if (!all) continue;
    for (const auto& [part, value] : rule["implied"].items()) implied_[part] = value;
  }
}

void FamilyConfig::require_known() const {
  for (const auto& [key, values] : family_.only.items()) {
    if (!file_.has(key) || std::ranges::find(values, file_.value(key)) != values.end()) continue;
    std::string legal;
    for (const Json& value : values) legal += (legal.empty() ? "" : " or ") + value.dump();
    file_.fail(key, fmt::format("must be {} where model_type is {}", legal, family_.model_type),
               "found " + file_.value(key).dump(), values.front().dump());
  }
}

std::string FamilyConfig::name(const std::string& part) const {
  return name_in(family_.names, file_.json(), part);
}

FamilyConfig::Place FamilyConfig::place(const std::string& part) const {
  if (implied_.contains(part)) return {row_, part};
  const bool is_told = family_.names.contains(part) || family_.absent.contains(part);
  if (!is_told && std::ranges::find(kOfRow, part) != kOfRow.end()) return {row_, part};
  return {file_, name(part)};
}

bool FamilyConfig::has(const std::string& part) const {
  const auto [reader, key] = place(part);
  return reader.has(key);
}

bool FamilyConfig::contains(const std::string& part) const {
  const auto [reader, key] = place(part);
  return reader.has(key) || reader.json().contains(key);
}

const Json& FamilyConfig::value(const std::string& part) const {
  const auto [reader, key] = place(part);
  return reader.value(key);
}

std::int64_t FamilyConfig::integer(const std::string& part, std::int64_t least, std::int64_t most) const {
  const auto [reader, key] = place(part);
  return reader.integer(key, least, most);
}

std::int64_t FamilyConfig::integer_or(const std::string& part, std::int64_t fallback, std::int64_t least,
                                      std::int64_t most) const {
  return has(part) ? integer(part, least, most) : fallback;
}

double FamilyConfig::number_or(const std::string& part, double fallback, double least, double most) const {
  const auto [reader, key] = place(part);
  return reader.number_or(key, fallback, least, most);
}

bool FamilyConfig::boolean(const std::string& part, bool fallback) const {
  const auto [reader, key] = place(part);
  return reader.boolean_or(key, fallback);
}

void FamilyConfig::fail(const std::string& part, const std::string& rule, const std::string& values,
                        const std::string& nearest) const {
  const auto [reader, key] = place(part);
  reader.fail(key, rule, values, nearest);
}

}  // namespace rehearse
