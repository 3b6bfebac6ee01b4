#include "frameworks/yaml_networks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/names.h"
#include "frameworks/layer_pattern.h"

namespace rehearse {

namespace {

// Parts of the names that NeMo 1 gives to networks (examples/nlp/language_modeling/conf).
constexpr std::array kOthers = {"bert", "t5", "mt5", "retro", "ul2", "griffin", "t0"};

// Short names begin a word: "gpt5b" is no T5.
bool names(const std::string& name, std::string_view part) {
  constexpr std::size_t kShort = 3;
  for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at + 1))
    if (part.size() > kShort || at == 0 || std::isalnum(static_cast<unsigned char>(name[at - 1])) == 0)
      return true;
  return false;
}

std::string text_at(const Json& yaml, const char* path) {
  const Json* const value = at_path(yaml, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

void refuse(const std::string& file, const std::string& key, const std::string& rule,
            const std::string& found = "") {
  throw InputError({file, key, rule, found, "pass a file whose model is a decoder"});
}

double number_at(const Json& yaml, const char* path) {
  const Json* const value = at_path(yaml, path);
  return value != nullptr && value->is_number() ? value->get<double>() : 0;
}

}  // namespace

void refuse_other_networks(const Json& yaml, const std::string& file) {
  const char* const rule = "is a part of a network that is no decoder alone";
  const Json model = yaml.value("model", Json::object());
  for (const char* part : {"encoder", "vision", "unet_config", "mm_cfg", "vit"})
    if (model.is_object() && model.contains(part) && model[part].is_object())
      refuse(file, std::string("model.") + part, rule);
  if (yaml.contains("encoder") && yaml["encoder"].is_object() && yaml["encoder"].contains("num_layers"))
    refuse(file, "encoder", rule);
  for (const char* key : {"name", "run.name", "run.model_train_name", "exp_manager.name"}) {
    const std::string name = in_lower_case(text_at(yaml, key));
    if (std::ranges::any_of(kOthers, [&](const char* other) { return names(name, other); }))
      refuse(file, key, "is no decoder", "found \"" + name + "\"");
  }
}

// Without ratios of other layers all are Mamba's (megatron/core/ssm/mamba_hybrid_layer_allocation.py).
std::string mamba_pattern(const Json& yaml, const std::string& file) {
  if (text_at(yaml, "name").find("mamba") == std::string::npos) return "";
  if (!text_at(yaml, "model.hybrid_override_pattern").empty()) return "";
  for (const char* key : {"model.hybrid_attention_ratio", "model.hybrid_mlp_ratio"})
    if (number_at(yaml, key) != 0)
      throw InputError({file, key, "spreads layers in an order that is not read", "",
                        "model.hybrid_override_pattern, the order that the run's log prints"});
  const Json* const layers = at_path(yaml, "model.num_layers");
  if (layers == nullptr || !layers->is_number_integer()) return "";
  const auto count = layers->get<std::int64_t>();
  if (count < 1 || count > kMaxLayersOfFile)
    throw InputError({file, "model.num_layers", fmt::format("must be from 1 to {}", kMaxLayersOfFile),
                      layers->dump(), ""});
  return std::string(static_cast<std::size_t>(count), 'M');
}

}  // namespace rehearse
