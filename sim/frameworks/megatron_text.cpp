#include "frameworks/megatron_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string unquoted(std::string text) {
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return text;
}

// "[a, b]" -> its elements; another value is one.
std::vector<std::string> elements(const std::string& value) {
  if (!value.starts_with('[') || !value.ends_with(']') || value.find('*') != std::string::npos)
    return {unquoted(value)};
  std::vector<std::string> all;
  std::istringstream parts(value.substr(1, value.size() - 2));
  for (std::string part; std::getline(parts, part, ',');)
    if (!trimmed(part).empty()) all.push_back(unquoted(trimmed(part)));
  return all;
}

bool says_nothing(const std::string& value) {
  static constexpr std::array kNothing = {"None", "null", "Null", "~", "[]"};
  return std::ranges::find(kNothing, value) != kNothing.end();
}

bool is_true(const std::string& value) {
  return value == "True" || value == "true";
}
bool is_false(const std::string& value) {
  return value == "False" || value == "false";
}

// --- model_config.yaml (Megatron-LM, tests/functional_tests/test_cases) ---

// The key of "  --num-layers: 32", and where its value begins; "" where the line has none.
std::string yaml_flag(const std::string& line, std::size_t& value) {
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos || line.compare(begin, 2, "--") != 0) return "";
  const std::size_t colon = line.find(':', begin);
  if (colon == std::string::npos || line.find_first_of(" \t", begin) < colon) return "";
  if (colon + 1 < line.size() && kBlanks.find(line[colon + 1]) == std::string_view::npos) return "";
  value = colon + 1;
  return line.substr(begin, colon - begin);
}

std::string without_yaml_comment(const std::string& text) {
  const std::size_t mark = text.find(" #");
  return trimmed(text.substr(0, mark));
}

bool is_yaml(const std::string& text) {
  std::istringstream lines(text);
  std::size_t value = 0;
  for (std::string line; std::getline(lines, line);)
    if (!yaml_flag(line, value).empty()) return true;
  return false;
}

ScriptFlags flags_of_yaml(const std::string& text) {
  ScriptFlags found;
  std::istringstream lines(text);
  int number = 0;
  bool lists = false;  // "- value" lines follow
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::size_t at = 0;
    const std::string name = yaml_flag(line, at);
    const std::string item = trimmed(line);
    if (name.empty()) {
      if (lists && item.starts_with("- "))
        found.flags.back().values.push_back(unquoted(without_yaml_comment(item.substr(2))));
      else if (!item.empty())
        lists = false;
      continue;
    }
    const std::string value = without_yaml_comment(line.substr(at));
    lists = value.empty();
    if (says_nothing(value) || is_false(value)) continue;
    found.flags.push_back({name, {}, number, ""});
    if (!is_true(value) && !value.empty()) found.flags.back().values = elements(value);
  }
  return found;
}

// --- the arguments of a log (megatron/training/arguments.py, _print_args) ---

struct NamedArgument {
  const char* name;
  const char* flag;
};
// Names of arguments whose flags are called otherwise.
constexpr std::array kRenamed = {
    NamedArgument{"fp8", "--fp8-format"},
    NamedArgument{"fp4", "--fp4-format"},
    NamedArgument{"virtual_pipeline_model_parallel_size", "--num-virtual-stages-per-pipeline-rank"},
    NamedArgument{"nccl_ub", "--use-nccl-ub"},
    NamedArgument{"world_size", "--nproc-per-node"},
};
// Flags of action store_false: given where the argument is False.
constexpr std::array kNegated = {
    NamedArgument{"add_bias_linear", "--disable-bias-linear"},
    NamedArgument{"add_position_embedding", "--no-position-embedding"},
    NamedArgument{"apply_rope_fusion", "--no-rope-fusion"},
    NamedArgument{"async_tensor_model_parallel_allreduce", "--no-async-tensor-model-parallel-allreduce"},
    NamedArgument{"bias_dropout_fusion", "--no-bias-dropout-fusion"},
    NamedArgument{"bias_gelu_fusion", "--no-bias-gelu-fusion"},
    NamedArgument{"bias_swiglu_fusion", "--no-bias-swiglu-fusion"},
    NamedArgument{"gradient_accumulation_fusion", "--no-gradient-accumulation-fusion"},
    NamedArgument{"masked_softmax_fusion", "--no-masked-softmax-fusion"},
    NamedArgument{"overlap_p2p_comm", "--no-overlap-p2p-communication"},
    NamedArgument{"persist_layer_norm", "--no-persist-layer-norm"},
    NamedArgument{"scatter_gather_tensors_in_pipeline", "--no-scatter-gather-tensors-in-pipeline"},
    NamedArgument{"tp_comm_bulk_dgrad", "--disable-tp-comm-bulk-dgrad"},
    NamedArgument{"tp_comm_bulk_wgrad", "--disable-tp-comm-bulk-wgrad"},
    NamedArgument{"tp_comm_overlap_ag", "--disable-tp-comm-overlap-ag"},
    NamedArgument{"tp_comm_overlap_rs", "--disable-tp-comm-overlap-rs"},
};
// What follows from others, or tells of the process.
constexpr std::array kFollows = {"rank",
                                 "local_rank",
                                 "data_parallel_size",
                                 "transformer_pipeline_model_parallel_size",
                                 "params_dtype",
                                 "consumed_train_samples",
                                 "consumed_valid_samples",
                                 "encoder_seq_length",
                                 "encoder_num_layers",
                                 "decoder_seq_length"};

// "AttnBackend.auto" and "torch.bfloat16", as Python shows them, are "auto" and "bf16" of a flag.
std::string as_flag_value(const std::string& value) {
  static constexpr std::array kTypes = {
      NamedArgument{"torch.float32", "fp32"}, NamedArgument{"torch.float16", "fp16"},
      NamedArgument{"torch.bfloat16", "bf16"}, NamedArgument{"torch.uint8", "fp8"}};
  for (const NamedArgument& type : kTypes)
    if (value == type.name) return type.flag;
  const std::size_t dot = value.find('.');
  const bool is_member = dot != std::string::npos && std::isupper(static_cast<unsigned char>(value[0])) != 0;
  return is_member ? value.substr(dot + 1) : value;
}

template <std::size_t Size>
const char* flag_in(const std::array<NamedArgument, Size>& list, const std::string& name) {
  const auto* const found = std::ranges::find_if(list, [&](const auto& each) { return name == each.name; });
  return found == list.end() ? nullptr : found->flag;
}

// The name before "......" and the value behind it, whatever a launcher writes before both.
bool is_argument(const std::string& line, std::string& name, std::string& value) {
  const std::size_t dots = line.find(" ..");
  const std::size_t end = dots == std::string::npos ? dots : line.find_first_not_of('.', dots + 1);
  if (end == std::string::npos || line[end] != ' ') return false;
  const std::size_t begin = line.find_last_of(kBlanks, dots - 1);
  if (dots == 0) return false;
  name = line.substr(begin == std::string::npos ? 0 : begin + 1,
                     dots - (begin == std::string::npos ? 0 : begin + 1));
  value = trimmed(line.substr(end));
  return !name.empty();
}

bool is_border(const std::string& line, const char* what) {
  return line.find(std::string("--- ") + what + " ---") != std::string::npos;
}

void add_argument(const std::string& name, const std::string& value, int line,
                  const std::set<std::string>& known, ScriptFlags& found, std::vector<std::string>& unknown) {
  if (std::ranges::count(kFollows, name) > 0) return;
  if (const char* flag = flag_in(kNegated, name)) {
    if (is_false(value)) found.flags.push_back({flag, {}, line, ""});
    return;
  }
  if (says_nothing(value) || is_false(value)) return;
  std::string flag = "--" + name;
  if (const char* renamed = flag_in(kRenamed, name)) flag = renamed;
  if (!known.contains(flag)) std::ranges::replace(flag, '_', '-');
  if (!known.contains(flag)) return unknown.push_back(name);
  found.flags.push_back({flag, {}, line, ""});
  if (is_true(value)) return;
  for (const std::string& element : elements(value))
    found.flags.back().values.push_back(as_flag_value(element));
}

// With sequence parallelism the argument is False, and its reductions overlap nonetheless.
void drop_what_sequence_parallelism_implies(ScriptFlags& found) {
  const auto is = [](const char* name) {
    return [name](const ScriptFlag& flag) { return flag.name == name; };
  };
  if (std::ranges::any_of(found.flags, is("--sequence-parallel")))
    std::erase_if(found.flags, is("--no-async-tensor-model-parallel-allreduce"));
}

// The first block: restarts print it again.
ScriptFlags flags_of_log(const std::string& text, const std::set<std::string>& known) {
  ScriptFlags found;
  std::istringstream lines(text);
  std::vector<std::string> unknown;
  std::string name, value;
  int number = 0;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (is_border(line, "end of arguments")) break;
    if (is_border(line, "arguments"))
      inside = true;
    else if (inside && is_argument(line, name, value))
      add_argument(name, value, number, known, found, unknown);
  }
  drop_what_sequence_parallelism_implies(found);
  if (!unknown.empty())
    found.notes.push_back(
        fmt::format("{} unknown arguments of the log are ignored: {}", unknown.size(), join(unknown)));
  return found;
}

bool is_log(const std::string& text) {
  return text.find("- arguments -") != std::string::npos;
}

}  // namespace

ScriptFlags megatron_text(const std::string& text, const std::string& file,
                          const std::set<std::string>& known) {
  if (is_log(text)) return flags_of_log(text, known);
  if (is_yaml(text)) return flags_of_yaml(text);
  return script_flags(text, file);
}

}  // namespace rehearse
