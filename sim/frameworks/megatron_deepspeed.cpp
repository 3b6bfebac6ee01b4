// Source: deepspeedai/Megatron-DeepSpeed 4efb479d, megatron/arguments.py, megatron/model/transformer.py.
#include "frameworks/megatron_deepspeed.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace rehearse {

bool has_deepspeed_engine(const MegatronFlags& flags) {
  return flags.has("--deepspeed");
}

bool is_megatron_deepspeed(const MegatronFlags& flags) {
  // Logs of Pai-Megatron-Patch print the interval too, and its networks of Megatron core read it no more.
  const bool is_of_core = flags.has("--moe-token-dispatcher-type");
  return has_deepspeed_engine(flags) || flags.has("--topk") || flags.has("--mlp-type") ||
         (flags.has("--expert-interval") && !is_of_core);
}

bool has_engine_file(const MegatronFlags& flags) {
  constexpr const char* kFile = "--deepspeed-config";
  const bool has_name = has_deepspeed_engine(flags) && flags.has(kFile) && !flags.values(kFile).empty();
  return has_name && flags.text_of_file(flags.text(kFile)) != nullptr;
}

void add_megatron_deepspeed(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes) {
  if (flags.has("--enable-zbh1-pipeline")) plan["schedule"] = "zb-h1";
  if (const std::int64_t ranks = flags.integer_or("--ds-sequence-parallel-size", 1); ranks > 1) {
    plan["cp"] = ranks;  // DeepSpeed-Ulysses: deepspeed/sequence/layer.py
    plan["cp_comm_type"] = "a2a";
  }
  const bool has_experts = flags.has("--num-experts") && flags.integer("--num-experts") > 1;
  if (has_experts && is_megatron_deepspeed(flags)) {
    if (!flags.has("--disable-moe-token-dropping"))
      plan["moe_capacity"] = flags.number_or("--moe-train-capacity-factor", 1);
    const bool splits = flags.has("--enable-expert-tensor-parallelism");
    if (!splits && flags.integer_or("--tensor-model-parallel-size", 1) > 1) plan["etp"] = 1;
  }
  if (!has_deepspeed_engine(flags)) return;
  plan["framework"] = "deepspeed";
  for (const char* key : {"overlap_grad_reduce", "overlap_param_gather"}) plan.erase(key);
  if (!flags.has("--zero-stage") && !has_engine_file(flags)) {
    plan["zero"] = 1;
    notes.emplace_back(
        "--zero-stage is not given: its default 1 is counted. The configuration file of DeepSpeed decides; "
        "--zero STAGE sets it");
  }
}

// DeepSpeed's engine shards, reduces, offloads and clips as its file says. Sizes are the script's.
std::vector<ImportedOption> add_engine_file(const MegatronFlags& flags, Json& plan, Imported& imported) {
  if (!has_engine_file(flags)) return {};
  std::vector<std::string>& notes = imported.notes;
  const std::string name = flags.text("--deepspeed-config");
  const std::string* const text = flags.text_of_file(name);
  if (!Json::accept(*text) && text->find('$') != std::string::npos)
    flags.fail("--deepspeed-config",
               "names a file that the script writes with values that it does not decide",
               words_that_decide(*text, flags.file()));
  Imported engine = import_deepspeed(JsonReader::of_text(*text, name), 0);
  imported.omitted.insert(imported.omitted.end(), engine.omitted.begin(), engine.omitted.end());
  const Json& said = engine.scenario["plan"];
  static const std::set<std::string> of_engine = {
      "zero", "zero_shard", "overlap_grad_reduce", "bucket", "recipe", "grad_reduce", "offload", "clip_grad"};
  for (const auto& [key, value] : said.items()) {
    const bool differs = plan.contains(key) && plan[key] != value;
    if (differs && key == "zero" && flags.has("--zero-stage"))
      notes.push_back(
          fmt::format("--zero-stage {} gives way to stage {} of {}", plan[key].dump(), value.dump(), name));
    else if (differs && !of_engine.contains(key) && key != "framework")
      notes.push_back(fmt::format("{} has {} {}: {} of the script is counted", name, key, value.dump(),
                                  plan[key].dump()));
    if (of_engine.contains(key)) plan[key] = value;
  }
  if (!said.contains("zero")) plan["zero"] = 0;
  plan["clip_grad"] = said.value("clip_grad", 0.0);
  notes.insert(notes.end(), engine.notes.begin(), engine.notes.end());
  for (ImportedOption& each : engine.options) each.place = name;
  return std::move(engine.options);
}

// Experts are in the last layer of every `--expert-interval`. A residual MLP is dense, and runs beside them.
void add_experts_of_deepspeed(const MegatronFlags& flags, std::int64_t width, Json& config,
                              std::vector<std::string>& notes) {
  config["num_experts_per_tok"] = flags.integer_or("--topk", 1);
  const std::int64_t interval = std::max<std::int64_t>(1, flags.integer_or("--expert-interval", 2));
  const std::int64_t layers = config.value("num_hidden_layers", std::int64_t{0});
  if (interval > layers)
    flags.fail("--expert-interval", "must be at most the number of layers", std::to_string(layers));
  std::string marks;
  for (std::int64_t layer = 1; layer <= layers; ++layer) marks += layer % interval == 0 ? '1' : '0';
  if (interval > 1) config["moe_layer_freq"] = marks;
  if (flags.text_or("--mlp-type", "standard") != "residual") return;
  config["moe_shared_expert_intermediate_size"] = width;
  notes.emplace_back(
      "--mlp-type residual is approximated: the dense MLP is counted as a shared expert, without the "
      "coefficients that weigh the two");
}

}  // namespace rehearse
