#include "frameworks/named_arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "frameworks/megatron_options.h"

namespace rehearse {

namespace {

struct Renamed {
  const char* name;
  const char* other;
};

// Arguments that the parser sets from others, and fields of the core's dataclasses that it names otherwise
// (megatron/training/argument_utils.py, core_transformer_config_from_args).
constexpr std::array kRenamed = {
    Renamed{"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"},
    Renamed{"world_size", "nproc_per_node"},
    Renamed{"num_moe_experts", "num_experts"},
    Renamed{"fp8_param", "fp8_param_gather"},
    Renamed{"fp8_format", "fp8"},
    Renamed{"fp4_format", "fp4"},
    Renamed{"fp4_param", "fp4_param_gather"},
    Renamed{"layernorm_epsilon", "norm_epsilon"},
    Renamed{"share_embeddings_and_output_weights", "tie_embeddings"},
};
// Arguments that follow from others, or describe the process.
constexpr std::array kFollows = {"rank",
                                 "local_rank",
                                 "data_parallel_size",
                                 "transformer_pipeline_model_parallel_size",
                                 "params_dtype",
                                 "consumed_train_samples",
                                 "consumed_valid_samples",
                                 "skipped_train_samples",
                                 "encoder_seq_length",
                                 "encoder_num_layers",
                                 "decoder_seq_length",
                                 "iteration",
                                 "use_torchrun_for_rerun"};

bool says_nothing(const std::vector<std::string>& values) {
  static constexpr std::array kNothing = {"None", "null", "Null", "NULL", "~", "[]", ""};
  return values.empty() || (values.size() == 1 && std::ranges::find(kNothing, values[0]) != kNothing.end());
}

// "" and "[]" are no value of an option that takes a number, and false is none either.
bool is_of_another_type(const MegatronOption& option, const std::vector<std::string>& values) {
  if (!option.takes_number() || option.role == OptionRole::free) return false;
  return values.size() == 1 &&
         (values[0].empty() || values[0] == "[]" || values[0] == "{}" || is_false_word(values[0]));
}

// "none" stands for no value, unless it is one of the option's own.
bool is_none(const MegatronOption& option, const std::vector<std::string>& values) {
  return values.size() == 1 && values[0] == "none" && std::ranges::count(option.choices, "none") == 0;
}

// "AttnBackend.auto" and "torch.bfloat16", as Python shows them, are "auto" and "bf16" of an option.
std::string as_option_value(const std::string& value) {
  static constexpr std::array kTypes = {Renamed{"torch.float32", "fp32"}, Renamed{"torch.float16", "fp16"},
                                        Renamed{"torch.bfloat16", "bf16"}, Renamed{"torch.uint8", "fp8"}};
  for (const Renamed& type : kTypes)
    if (value == type.name) return type.other;
  const std::size_t dot = value.find('.');
  const bool is_member = dot != std::string::npos && std::isupper(static_cast<unsigned char>(value[0])) != 0;
  return is_member ? value.substr(dot + 1) : value;
}

// Lists an argument that leaves everything as it is.
void list_argument(const NamedArgument& argument, const std::vector<const MegatronOption*>& options,
                   ScriptFlags& found) {
  if (argument.is_default) return;
  const bool follows = std::ranges::count(kFollows, argument.name) > 0;
  const bool is_free = follows || std::ranges::any_of(options, [](const MegatronOption* option) {
                         return option->role == OptionRole::free;
                       });
  const OptionFate fate = is_free           ? OptionFate::free
                          : options.empty() ? OptionFate::unknown
                                            : OptionFate::used;
  found.others.push_back({argument.source.empty() ? "--" + argument.name : argument.source,
                          join(argument.values, " "),
                          argument.line > 0 ? fmt::format("line {}", argument.line) : "", fate, "", ""});
}

std::string with_underscores(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace

bool is_true_word(const std::string& value) {
  return value == "True" || value == "true" || value == "TRUE";
}
bool is_false_word(const std::string& value) {
  return value == "False" || value == "false" || value == "FALSE";
}

void add_named_argument(const NamedArgument& argument, ScriptFlags& found) {
  std::string name = with_underscores(argument.name);
  for (const Renamed& each : kRenamed)
    if (name == each.name) name = each.other;
  const std::string only = argument.values.size() == 1 ? argument.values[0] : "";
  const bool is_on = is_true_word(only), is_off = is_false_word(only);
  const auto add = [&](const std::string& option) -> ScriptFlag& {
    found.flags.push_back({option, {}, argument.line});
    found.flags.back().source = argument.source;
    found.flags.back().is_default = argument.is_default;
    return found.flags.back();
  };
  auto options = options_of_argument(name);
  if (options.empty())
    if (const MegatronOption* spelled = find_megatron_option("--" + argument.name))
      options.push_back(spelled);
  const std::size_t before = found.flags.size();
  const bool sets = !says_nothing(argument.values) && std::ranges::count(kFollows, argument.name) == 0;
  for (const MegatronOption* option : options) {
    if (is_of_another_type(*option, argument.values)) {
      add(option->name()).values = argument.values;
      continue;
    }
    if (!sets) break;
    if (is_none(*option, argument.values)) continue;
    const bool is_switch = option->takes == OptionTakes::nothing;
    const bool by_name =
        argument.name != option->arguments.front() && option->negates;  // "no_rope_fusion: true"
    if (is_switch && (is_on || is_off || only == "1" || only == "0")) {
      if ((is_on || only == "1") == (!option->negates || by_name)) add(option->name());
    } else if (!is_switch && !is_off) {
      ScriptFlag& flag = add(option->name());
      for (const std::string& value : argument.values) flag.values.push_back(as_option_value(value));
    } else if (is_switch) {
      add(option->name()).values = argument.values;  // which it does not take
    }
  }
  if (options.empty() && sets && !is_off) add("--" + argument.name).values = argument.values;
  if (found.flags.size() == before) list_argument(argument, options, found);
}

bool takes_one_value(const std::string& argument) {
  return std::ranges::any_of(options_of_argument(argument), [](const MegatronOption* option) {
    return option->role != OptionRole::free &&
           (option->takes_number() || option->takes == OptionTakes::nothing);
  });
}

void require_switches(const std::vector<NamedArgument>& arguments, const std::set<std::string>& switches,
                      const std::string& file) {
  std::vector<Violation> violations;
  for (const NamedArgument& each : arguments) {
    const std::string word = join(each.values, " ");
    const bool is_switch = is_true_word(word) || is_false_word(word) || says_nothing(each.values);
    if (switches.contains(each.name) && !is_switch)
      violations.push_back({file, fmt::format("line {}: {}", each.line, each.source), "must be true or false",
                            "found " + word.substr(0, 200), ""});
  }
  if (!violations.empty()) throw InputError(std::move(violations));
}

void note_conflicts(const std::vector<NamedArgument>& arguments, std::vector<std::string>& notes) {
  std::map<std::string, const NamedArgument*> last;
  for (const NamedArgument& each : arguments) {
    const NamedArgument*& before = last[each.name];
    if (before != nullptr && before->values != each.values && !options_of_argument(each.name).empty())
      notes.push_back(fmt::format("line {}: {} gives way to {} of line {}, which sets the same argument",
                                  before->line, before->source, each.source, each.line));
    before = &each;
  }
}

}  // namespace rehearse
