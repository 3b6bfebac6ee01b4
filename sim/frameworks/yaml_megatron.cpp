#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "frameworks/megatron_flags.h"
#include "frameworks/megatron_options.h"
#include "frameworks/named_arguments.h"
#include "frameworks/yaml_dialects.h"
#include "frameworks/yaml_networks.h"

namespace rehearse {

namespace {

constexpr int kMaxFiles = 20;  // that extend each other
const std::vector<std::string> kNull = {"null"};

std::string last_step(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// Finds an entry by its path, then by the last step of the path.
template <typename Table>
auto look_up(const Table& table, const std::string& path) {
  const auto found = table.find(path);
  return found != table.end() ? found : table.find(last_step(path));
}

std::string word_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "null" : value.dump();
}

std::string dotted(std::string path) {
  std::ranges::replace(path, '/', '.');
  return path;
}

class DialectReader {
 public:
  DialectReader(const YamlDialect& dialect, const std::string& file, const ImportRequest& request)
      : dialect_(dialect), file_(file), request_(request) {}

  Imported read(const YamlText& yaml) {
    if (!yaml.json.is_object())
      throw InputError({file_, "", "must be a YAML map", "", "model: {num_layers: 32, ...}"});
    refuse_other_networks(yaml.json, file_);
    visit(yaml, yaml.json, "", "", false);
    if (const std::string pattern = mamba_pattern(yaml.json, file_); !pattern.empty())
      instead("num_layers", "hybrid_override_pattern", pattern);
    unread_finetuning(yaml.json);
    if (dialect_.name == "ms-swift") note_conflicts(arguments_, notes_);
    named_precision();
    if (yaml.json.contains("comm_overlap") && yaml.json["comm_overlap"].is_object()) overlap();
    derive();
    add_defaults();
    ScriptFlags found;
    found.others = std::move(others_);
    found.notes = std::move(notes_);
    for (const NamedArgument& argument : arguments_) add_named_argument(argument, found);
    add_environment(variables_, found);
    Imported imported = read_megatron(std::move(found), file_, request_);
    imported.omitted.insert(imported.omitted.begin(), omitted_.begin(), omitted_.end());
    if (imported.model.is_null() && !dialect_.unnamed.empty()) {
      imported.notes.push_back(dialect_.unnamed);
      note_missing_precision(imported);
    }
    return imported;
  }

 private:
  // Recipes train in 16 bits, so that the default misses the step time and the memory by far.
  void note_missing_precision(Imported& imported) const {
    const Json& plan = imported.scenario["plan"];
    if (plan.value("precision", "") != "fp32" || request_.over.contains("/plan/precision")) return;
    imported.notes.push_back(fmt::format(
        "no precision is named: fp32 is counted{}; recipes train in bf16: pass --precision bf16 --zero 1",
        plan.value("zero", 0) == 0 ? ", with the whole optimizer state on each GPU" : ""));
  }

  void add_defaults() {
    std::vector<std::string> names;
    for (const auto& [name, value] : dialect_.defaults) {
      if (find(name) != nullptr) continue;
      arguments_.push_back({name, {value}, 0, name + " by default", true});
      names.push_back(fmt::format("{} {}", name, value));
    }
    if (!names.empty() && !dialect_.defaults_of.empty())
      notes_.push_back(fmt::format("by default of {}: {}", dialect_.defaults_of, join(names)));
  }

  // NeMo's fork for Neuron has data of finetuning in files of pretraining, which does not read them.
  void unread_finetuning(const Json& yaml) {
    const Json* const tunes = at_path(yaml, "model.data.fine_tuning");
    if (tunes == nullptr || *tunes != false) return;
    std::erase_if(arguments_, [&](const NamedArgument& each) {
      const bool is_unread = each.source.starts_with("model.data.train_ds.");
      if (is_unread)
        others_.push_back({each.source, join(each.values, " "), fmt::format("line {}", each.line),
                           OptionFate::free, "", ""});
      return is_unread;
    });
  }

  void remember(const std::string& path, const Json& value, int line, OptionFate fate,
                std::string effect = "") {
    others_.push_back({dotted(path), value.is_structured() ? "" : word_of(value),
                       line > 0 ? fmt::format("line {}", line) : "", fate, std::move(effect), ""});
  }

  void visit(const YamlText& yaml, const Json& value, const std::string& path, const std::string& pointer,
             bool free) {
    const int line = yaml.line(pointer);
    const Json plain = value.is_string() ? with_defaults(value.get<std::string>()) : value;
    if (value.is_object() && look_up(dialect_.environment, path) != dialect_.environment.end())
      return read_environment(yaml, path, pointer);
    const auto renamed = look_up(dialect_.rename, path);
    if (!path.empty() && !value.is_object() && renamed != dialect_.rename.end())
      return add(renamed->second, plain, line, path);
    if (const auto ignored = look_up(dialect_.ignored, path);
        !path.empty() && ignored != dialect_.ignored.end()) {
      if (plain.is_null() || plain == false || plain == 0 || plain == "none" || plain.empty())
        return remember(path, plain, line, OptionFate::used);
      notes_.push_back(fmt::format("line {}: {} is ignored: {}", line, dotted(path), ignored->second));
      omit_effect(path, plain, ignored->second);
      return remember_all(yaml, plain, path, pointer, ignored->second);
    }
    if (const auto counted = dialect_.counted.find(path); counted != dialect_.counted.end()) {
      const bool differs = !plain.is_null() && plain != counted->second.first;
      if (differs) {
        notes_.push_back(fmt::format("line {}: {} {} is ignored: {}", line, dotted(path), word_of(plain),
                                     counted->second.second));
        omit_effect(path, plain, counted->second.second);
      }
      return remember(path, plain, line, differs ? OptionFate::ignored : OptionFate::used,
                      differs ? counted->second.second : "");
    }
    if (!free && !path.empty() && look_up(dialect_.free, path) != dialect_.free.end()) {
      free = true;
    }
    if (value == Json::object() && takes_one_value(last_step(path))) {
      add(last_step(path), value, line, path);
    } else if (value.is_object()) {
      for (const auto& [key, below] : value.items())
        visit(yaml, below, path.empty() ? key : path + "/" + key, pointer + "/" + pointer_step(key), free);
    } else if (free) {
      remember(path, plain, line, OptionFate::free);
    } else if (names_a_file(path)) {
      read_file(word_of(plain), line, path);
    } else {
      add(last_step(path), plain, line, path);
    }
  }

  void read_environment(const YamlText& yaml, const std::string& path, const std::string& pointer) {
    std::vector<SetVariable> variables = variables_at(yaml, pointer);
    if (variables.empty()) remember(path, Json::object(), yaml.line(pointer), OptionFate::free);
    for (SetVariable& each : variables)
      if (is_of_library(each.name))
        variables_.push_back(std::move(each));
      else
        remember(path + "/" + each.name, each.value, each.line, OptionFate::free);
  }

  // An ignored key, or the keys of an ignored section.
  void remember_all(const YamlText& yaml, const Json& value, const std::string& path,
                    const std::string& pointer, const std::string& effect) {
    if (!value.is_object()) return remember(path, value, yaml.line(pointer), OptionFate::ignored, effect);
    for (const auto& [key, below] : value.items())
      remember_all(yaml, below, path + "/" + key, pointer + "/" + pointer_step(key), effect);
  }

  // In Primus, a section names the file of a model's shape, and such a file names the files that it extends.
  bool names_a_file(const std::string& path) const {
    return dialect_.name == "primus" && path.starts_with("modules/") && path.ends_with("/model");
  }

  void read_file(const std::string& name, int line, const std::string& path) {
    const auto given = request_.shell.files.find(last_step(name));
    if (given == request_.shell.files.end()) {
      notes_.push_back(fmt::format("line {}: {} is {}, which is not read: pass --source {}, or --model", line,
                                   dotted(path), name, name));
      return remember(path, name, line, OptionFate::used);
    }
    if (++files_ > kMaxFiles)
      throw InputError({file_, dotted(path), "files extend each other without end", name, ""});
    const YamlText yaml = read_yaml(given->second, name);
    for (const char* key : {"extends", "bases", "includes"})
      if (yaml.json.is_object() && yaml.json.contains(key))
        for (const Json& each : yaml.json[key].is_array() ? yaml.json[key] : Json::array({yaml.json[key]}))
          read_file(word_of(each), line, path);
    if (yaml.json.is_object()) visit(yaml, yaml.json, "", "", false);
  }

  void add(std::string name, const Json& value, int line, const std::string& path) {
    NamedArgument argument{std::move(name), {}, line, dotted(path)};
    const bool is_one = value.is_array() && value.size() <= 1 && takes_one_value(argument.name);
    if (value.is_array() && !is_one)
      for (const Json& each : value) argument.values.push_back(word_of(each));
    else
      argument.values.push_back(word_of(value));
    const auto table = dialect_.values.find(argument.name);
    if (table != dialect_.values.end())
      for (std::string& word : argument.values)
        if (const auto other = table->second.find(word); other != table->second.end()) word = other->second;
    arguments_.push_back(std::move(argument));
  }

  void omit_effect(const std::string& path, const Json& value, const std::string& counted) {
    const auto changes = look_up(dialect_.changes, path);
    if (changes == dialect_.changes.end()) return;
    omitted_.push_back({value.is_structured() ? dotted(path) : dotted(path) + " " + word_of(value), counted,
                        changes_of(changes->second)});
  }

  // "${NAME:value}", an environment variable with a default.
  Json with_defaults(const std::string& text) const {
    if (!text.starts_with("${") || !text.ends_with('}')) return text;
    const std::size_t colon = text.find(':');
    const std::string name = text.substr(2, std::min(colon, text.size() - 1) - 2);
    if (name.find_first_of(".$") != std::string::npos) return text;  // a resolver or a path of OmegaConf
    if (const auto given = request_.shell.variables.find(name); given != request_.shell.variables.end())
      return plain_yaml(given->second);
    return colon == std::string::npos ? Json(text)
                                      : plain_yaml(text.substr(colon + 1, text.size() - colon - 2));
  }

  NamedArgument* find(const std::string& name) {
    const auto found = std::ranges::find(arguments_, name, &NamedArgument::name);
    return found == arguments_.end() ? nullptr : &*found;
  }

  bool is(const std::string& name, const std::string& word) {
    const NamedArgument* argument = find(name);
    return argument != nullptr && argument->values.size() == 1 && argument->values[0] == word;
  }

  // Adds another argument in the place of one.
  void instead(const std::string& name, const std::string& other, const std::string& value) {
    const NamedArgument* argument = find(name);
    if (argument == nullptr || other.empty()) return;
    arguments_.push_back({other, {value}, argument->line, argument->source});
  }

  void drop(std::initializer_list<const char*> names) {
    std::erase_if(arguments_, [&](const NamedArgument& each) {
      const bool drops = std::ranges::any_of(names, [&](const char* name) { return each.name == name; });
      if (drops)
        others_.push_back({each.source, join(each.values, " "), fmt::format("line {}", each.line),
                           OptionFate::used, "", ""});
      return drops;
    });
  }

  // Derives arguments that these programs state in other words than Megatron-LM.
  void derive() {
    require_switches(arguments_,
                     {"grad_reduce_in_fp32", "share_embeddings_and_output_weights", "gated_linear_unit",
                      "fp8_hybrid", "fp8_e4m3", "fp8_switch"},
                     file_);
    activation();
    precision();
    tokenizer();
    if (find("num_query_groups") && !is("num_query_groups", "null") && !find("group_query_attention"))
      instead("num_query_groups", "group_query_attention", "true");
    if (const NamedArgument* optimizer = find("optim_name")) {
      const std::string name = join(optimizer->values, "");
      if (name.find("distributed") != std::string::npos || name == "mcore_distributed_optim")
        instead("optim_name", "use_distributed_optimizer", "true");
      const bool is_adam = name.find("adam") != std::string::npos || name == "mcore_distributed_optim";
      instead("optim_name", "optimizer", is_adam ? "adam" : name);
      drop({"optim_name"});
    }
    if (is("grad_reduce_in_fp32", "false")) instead("grad_reduce_in_fp32", "grad_reduce_in_bf16", "true");
    if (is("grad_reduce_in_fp32", "true"))
      instead("grad_reduce_in_fp32", "accumulate_allreduce_grads_in_fp32", "true");
    if (is("grad_sync_dtype", "bf16")) instead("grad_sync_dtype", "grad_reduce_in_bf16", "true");
    if (is("share_embeddings_and_output_weights", "false"))
      instead("share_embeddings_and_output_weights", "untie_embeddings_and_output_weights", "true");
    if (const NamedArgument* bucket = find("bucket_cap_mb"); bucket && !bucket->values.empty())
      notes_.push_back(fmt::format("line {}: {} is ignored: buckets have Megatron-LM's size", bucket->line,
                                   bucket->source));
    drop({"grad_reduce_in_fp32", "grad_sync_dtype", "share_embeddings_and_output_weights", "bucket_cap_mb"});
  }

  // NeMo names a library and a type; only Megatron's own types have a known vocabulary.
  void tokenizer() {
    if (find("tokenizer_library") && !is("tokenizer_library", "megatron")) {
      const bool names_type = find("tokenizer_type") && !is("tokenizer_type", "null");
      if (names_type) instead("tokenizer_type", "tokenizer_model", join(find("tokenizer_type")->values, ""));
      drop({"tokenizer_type"});
      instead("tokenizer_library", "tokenizer_type", "SentencePieceTokenizer");
    }
    drop({"tokenizer_library"});
  }

  void activation() {
    const NamedArgument* argument = find("activation");
    if (argument == nullptr) argument = find("activation_func");
    const std::string name = argument == nullptr ? "" : join(argument->values, " ");
    const std::string from = argument == nullptr ? "gated_linear_unit" : argument->name;
    const bool gated = is("gated_linear_unit", "true") || name.find("swiglu") != std::string::npos;
    const bool silu =
        name.find("silu") != std::string::npos || name.find("swiglu") != std::string::npos || name.empty();
    if (gated && silu) instead(from, "swiglu", "true");
    if (name.find("geglu") != std::string::npos || (gated && !silu)) {
      instead(from, "swiglu", "true");
      notes_.push_back(fmt::format("{} {} is modelled as swiglu", dotted(from), name));
    }
    if (!gated && (name.find("squared") != std::string::npos && name.find("relu") != std::string::npos))
      instead(from, "squared_relu", "true");
    drop({"activation", "activation_func", "gated_linear_unit"});
  }

  // Sets the argument to the section's own value, else to `value`. Values of other sections give way.
  void settle(const std::string& section, const std::string& name, const std::string& value, int line) {
    std::string word = value;
    for (const NamedArgument& each : arguments_)
      if (each.name == name && each.source.starts_with(section + ".") && each.values != kNull)
        word = join(each.values, " ");
    drop({name.c_str()});
    arguments_.push_back({name, {word}, line, section + "." + name});
  }

  // megatron/bridge/training/mixed_precision.py, setup: its fields replace those of model, optimizer and DDP.
  void named_precision() {
    const NamedArgument* argument = find("precision");
    if (argument == nullptr || dialect_.precisions.empty()) return;
    std::string name = join(argument->values, "");
    std::ranges::replace(name, '-', '_');
    const auto found = dialect_.precisions.find(name);
    const int line = argument->line;
    if (found == dialect_.precisions.end()) {
      if (name != "null")
        notes_.push_back(
            fmt::format("line {}: mixed_precision {} is not known: it is read by its words", line, name));
      return;
    }
    drop({"precision"});
    for (const auto& [key, value] : found->second) settle("mixed_precision", key, value, line);
  }

  // megatron/bridge/training/comm_overlap.py, _get_optimizer_overlap_cfgs and _get_model_comm_overlap_cfgs.
  void overlap() {
    const bool splits = is("sequence_parallel", "true") && find("tensor_model_parallel_size") &&
                        !is("tensor_model_parallel_size", "1");
    if (!splits && is("tp_comm_overlap", "true")) drop({"tp_comm_overlap"});
    if (!is("use_distributed_optimizer", "true")) return;
    for (const char* name : {"overlap_grad_reduce", "overlap_param_gather"})
      settle("comm_overlap", name, "true", 0);
    settle("comm_overlap", "ddp_bucket_size", "134217728", 0);
  }

  // "bf16-mixed" of Lightning and "bf16_with_fp8_current_scaling_mixed" of Megatron-Bridge.
  void precision() {
    if (const NamedArgument* argument = find("precision")) {
      const std::string word = join(argument->values, "");
      const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
      if (has("bf16")) instead("precision", "bf16", "true");
      if (!has("bf16") && has("16") && !has("fp8")) instead("precision", "fp16", "true");
      if (has("fp8")) instead("precision", "fp8", "hybrid");
      if (has("fp8") && has("current")) instead("precision", "fp8_recipe", "tensorwise");
      if (has("mxfp8")) instead("precision", "fp8_recipe", "mxfp8");
      if (has("subchannel") || has("blockwise")) instead("precision", "fp8_recipe", "blockwise");
      if (has("nvfp4")) instead("precision", "fp4", "e2m1");
    }
    // NeMo 1 reads the format where model.fp8 is true alone (megatron_gpt_model.py,
    // build_transformer_config).
    const bool is_off = dialect_.name == "nemo" && !is("fp8_switch", "true");
    if (!is_off && is("fp8_e4m3", "true"))
      instead("fp8_e4m3", "fp8", "e4m3");
    else if (!is_off && is("fp8_hybrid", "true"))
      instead("fp8_hybrid", "fp8", "hybrid");
    drop({"precision", "fp8_hybrid", "fp8_e4m3", "fp8_switch"});
  }

  const YamlDialect& dialect_;
  const std::string& file_;
  const ImportRequest& request_;
  std::vector<NamedArgument> arguments_;
  std::vector<SetVariable> variables_;
  std::vector<ImportedOption> others_;
  std::vector<std::string> notes_;
  std::vector<OmittedEffect> omitted_;
  int files_ = 0;
};

}  // namespace

Imported import_yaml_dialect(const YamlDialect& dialect, const YamlText& yaml, const std::string& file,
                             const ImportRequest& request) {
  return DialectReader(dialect, file, request).read(yaml);
}

}  // namespace rehearse
