// Source: deepspeedai/Megatron-DeepSpeed 4efb479d, megatron/arguments.py, megatron/model/transformer.py.
#include "frameworks/megatron_deepspeed.h"

#include <algorithm>

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
  if (!flags.has("--zero-stage")) {
    plan["zero"] = 1;
    notes.emplace_back(
        "--zero-stage is not given: its default 1 is counted. The configuration file of DeepSpeed decides; "
        "--zero STAGE sets it");
  }
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
