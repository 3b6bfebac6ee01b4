#include "model/read.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/data_path.h"
#include "base/json_kind.h"
#include "base/json_text.h"
#include "base/names.h"
#include "base/text_file.h"
#include "model/families.h"
#include "model/repository.h"

namespace rehearse {

namespace {

constexpr const char* kFolder = "scenarios/models";

struct Family {
  const char* model_type;
  const char* architecture;
  Model (*read)(const JsonReader&);
};

constexpr std::array kFamilies = {
    Family{"llama", "LlamaForCausalLM", read_llama},
    Family{"mistral", "MistralForCausalLM", read_mistral},
    Family{"qwen2", "Qwen2ForCausalLM", read_qwen2},
    Family{"qwen3", "Qwen3ForCausalLM", read_qwen3},
    Family{"gpt2", "GPT2LMHeadModel", read_gpt2},
    Family{"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox},
    Family{"nemotron", "NemotronForCausalLM", read_nemotron},
    Family{"nemotron_h", "NemotronHForCausalLM", read_nemotron_h},
    Family{"mixtral", "MixtralForCausalLM", read_mixtral},
    Family{"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe},
    Family{"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek_v2},
    Family{"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3},
    Family{"kimi_k2", "KimiK2ForCausalLM", read_deepseek_v3},
    Family{"gpt_oss", "GptOssForCausalLM", read_gpt_oss},
    Family{"megatron_gpt", "MegatronGPT", read_megatron_gpt},
};

const Family& find_family(const JsonReader& config, const std::string& key, const std::string& name,
                          const char* Family::*field) {
  std::vector<std::string> known;
  for (const Family& family : kFamilies) {
    if (name == family.*field) return family;
    known.emplace_back(family.*field);
  }
  config.fail(key, "must be one of " + some_names(known, name), fmt::format("found \"{}\"", name),
              nearest_name(name, known));
}

const Family& family_of(const JsonReader& config) {
  if (config.has("model_type") || !config.has("architectures")) {
    return find_family(config, "model_type", config.text("model_type"), &Family::model_type);
  }
  const Json& architectures = config.value("architectures");
  if (!architectures.is_array() || architectures.empty() || !architectures.front().is_string()) {
    config.fail("architectures", "must be an array of class names", "found " + architectures.dump());
  }
  return find_family(config, "architectures/0", architectures.front().get<std::string>(),
                     &Family::architecture);
}

// Python writes Infinity, -Infinity and NaN, which JSON has not: they become texts, which no number is read
// from.
std::string with_constants_quoted(const std::string& text) {
  std::string result;
  bool inside = false;  // a text
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\' && i + 1 < text.size()) {
      result += text[i++];
    } else if (text[i] == '"') {
      inside = !inside;
    } else if (!inside) {
      for (const std::string_view constant : {"Infinity", "-Infinity", "NaN"}) {
        if (text.compare(i, constant.size(), constant) != 0) continue;
        result += fmt::format("\"{}\"", constant);
        i += constant.size();
        break;
      }
    }
    if (i < text.size()) result += text[i];
  }
  return result;
}

JsonReader open_config(const std::string& file) {
  const JsonLimits limits;
  return JsonReader(parse_json(with_constants_quoted(read_text_file(file, limits.bytes)), file, limits),
                    file);
}

// What "architectures" says where "model_type" decides: another class may compute another network.
std::vector<std::string> other_architectures(const JsonReader& config, const Family& family) {
  if (!config.has("model_type") || !config.has("architectures")) return {};
  const Json& architectures = config.value("architectures");
  const auto is_family = [&](const Json& name) {
    return std::ranges::any_of(kFamilies, [&](const Family& other) {
      return name == other.architecture && other.read == family.read;
    });
  };
  if (architectures.is_array() && std::ranges::all_of(architectures, is_family)) return {};
  return {fmt::format("architectures {} disagrees with model_type \"{}\": ignored, the model is read as {}",
                      architectures.dump(), family.model_type, family.architecture)};
}

// A downloaded model's file is always config.json: its folder says which model it is.
std::string name_of(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string folder = path.parent_path().filename().string();
  return path.stem() == "config" && !folder.empty() && folder != "." ? folder : stem_of(file);
}

// The configuration in the folder that is named; "" where it is no such folder.
std::string config_in(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder).lexically_normal() / "config.json";
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) ? file.string() : "";
}

Model read_config_of(const JsonReader& config, const Family& family, const std::string& name) {
  Model model = family.read(config);
  model.name = name;
  model.warnings = other_architectures(config, family);
  for (std::string& doubt : doubtful_values(config, model)) model.warnings.push_back(std::move(doubt));
  for (std::string& key : unmodelled_keys(config, model)) model.not_modelled.push_back(std::move(key));
  std::sort(model.not_modelled.begin(), model.not_modelled.end());
  require_valid(model, config.file());
  return model;
}

}  // namespace

std::string model_file(const std::string& name_or_path) {
  const std::vector<std::string> known = model_names();
  const bool is_known = std::ranges::find(known, name_or_path) != known.end();
  if (!is_known && !is_stream(name_or_path)) {
    if (const std::string config = config_in(name_or_path); !config.empty()) return config;
    if (!why_unreadable(name_or_path).empty()) refuse_repository(name_or_path);
  }
  return find_data_file("model", kFolder, name_or_path);
}

Model read_model(const std::string& name_or_path) {
  const std::string file = model_file(name_or_path);
  const JsonReader config = open_config(file);
  require_kind(config.json(), file, JsonKind::model);
  return read_config_of(config, family_of(config), name_of(file));
}

Model read_inline_model(const Json& json, const std::string& file, const std::string& pointer) {
  const JsonReader config(json, file, pointer);
  const Family& family = family_of(config);
  Model model = read_config_of(config, family, config.text_or("name", "model"));
  if (family.read == read_megatron_gpt) config.reject_unknown();
  return model;
}

std::vector<std::string> model_names() {
  return data_names(kFolder);
}

}  // namespace rehearse
