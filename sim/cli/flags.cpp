#include "cli/flags.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <charconv>

#include "base/utf8.h"

namespace rehearse {

namespace {

std::int64_t parse_integer(const Flag& flag, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError(
        {"command line", flag.name, "must be an integer", fmt::format("found \"{}\"", text), ""});
  }
  return number;
}

double parse_number(const Flag& flag, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError({"command line", flag.name, "must be a number", fmt::format("found \"{}\"", text), ""});
  }
  return number;
}

Json parse_integers(const Flag& flag, std::string_view text) {
  Json list = Json::array();
  while (true) {
    const std::size_t comma = text.find(',');
    list.push_back(parse_integer(flag, text.substr(0, comma)));
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

// JSON holds no other text.
std::string parse_text(const Flag& flag, const std::string& text) {
  if (!is_utf8(text))
    throw InputError(
        {"command line", flag.name, "must be text in UTF-8", fmt::format("found \"{}\"", text), ""});
  return text;
}

std::string all_names(const Flag& flag) {
  std::string names = flag.name;
  for (const std::string& alias : flag.aliases) names += "," + alias;
  return names;
}

}  // namespace

Json parse_value(const Flag& flag, const std::string& text) {
  switch (flag.kind) {
    case FlagKind::integer:
      return parse_integer(flag, text);
    case FlagKind::number:
      return parse_number(flag, text);
    case FlagKind::layers:
      return text == "auto" ? Json(text) : parse_integers(flag, text);
    case FlagKind::text:
      return parse_text(flag, text);
    case FlagKind::on_off:
      if (text == "on" || text == "off") return text == "on";
      throw InputError(
          {"command line", flag.name, "must be on or off", fmt::format("found \"{}\"", text), ""});
  }
  return nullptr;
}

bool holds_commas(const Flag& flag) {
  return flag.kind == FlagKind::layers || flag.value == "LIST" || flag.value == "LAYOUT";
}

const std::vector<Flag>& scenario_flags() {
  using enum FlagKind;
  static const std::vector<Flag> flags = {
      {"--model", {}, "/model", text, "NAME|FILE", "preset, or a Hugging Face config.json"},
      {"--cluster",
       {},
       "/cluster",
       text,
       "NAME|FILE",
       "topology that ships with the program, or a cluster JSON"},
      {"--gpus", {}, "/gpus", integer, "N", "GPUs taken of the cluster"},
      {"--profile", {}, "/profile", text, "NAME|FILE", "calibration profile; default: the cluster's"},
      {"--tp", {"--tensor-model-parallel-size"}, "/plan/tp", integer, "N", "tensor parallel"},
      {"--pp", {"--pipeline-model-parallel-size"}, "/plan/pp", integer, "N", "pipeline parallel"},
      {"--vpp",
       {"--num-virtual-stages-per-pipeline-rank"},
       "/plan/vpp",
       integer,
       "N",
       "model chunks a pipeline rank"},
      {"--dp", {}, "/plan/dp", integer, "N", "data-parallel replicas; derived when left out"},
      {"--cp", {"--context-parallel-size"}, "/plan/cp", integer, "N", "context parallel"},
      {"--ep", {"--expert-model-parallel-size"}, "/plan/ep", integer, "N", "expert parallel"},
      {"--mbs", {"--micro-batch-size"}, "/plan/micro_batch", integer, "N", "sequences of a microbatch"},
      {"--gbs", {"--global-batch-size"}, "/plan/global_batch", integer, "N", "sequences of an iteration"},
      {"--seq", {"--seq-length"}, "/plan/seq", integer, "N", "tokens of a sequence"},
      {"--schedule",
       {},
       "/plan/schedule",
       text,
       "NAME|FILE",
       "gpipe, 1f1b, interleaved-1f1b, zb-h1, zb-h2, zb-v, dualpipe-v, v-half or v-min, or PyTorch's CSV of "
       "actions"},
      {"--recompute",
       {"--recompute-granularity"},
       "/plan/recompute",
       text,
       "NAME",
       "none, selective, op (torchtitan's selective by op) or full"},
      {"--recompute-method",
       {},
       "/plan/recompute_method",
       text,
       "NAME",
       "full recompute: uniform (of groups of layers) or block (the first layers of a stage)"},
      {"--recompute-num-layers",
       {},
       "/plan/recompute_num_layers",
       integer,
       "N",
       "layers of a group (uniform), or recomputed layers of a stage (block)"},
      {"--recompute-modules",
       {},
       "/plan/recompute_modules",
       text,
       "LIST",
       "selective recompute: core_attn, mla_up_proj, layernorm, mlp, moe, moe_act, shared_experts; comma "
       "separated"},
      {"--recompute-early-stop",
       {},
       "/plan/recompute_early_stop",
       on_off,
       "on|off",
       "full recompute ends with the last tensor that the backward pass needs (PyTorch's, since 2.1)"},
      {"--recipe",
       {},
       "/plan/recipe",
       text,
       "NAME",
       "state of a parameter: megatron (18 bytes), zero (16), sagemaker (20), deepspeed-bf16 (20), "
       "nanotron (20), fsdp (16), autocast (18), bf16 (8) or fp8-weights"},
      {"--precision", {}, "/plan/precision", text, "NAME", "bf16, fp16, fp8 or fp32"},
      {"--order", {}, "/plan/order", text, "AXES", "rank order, fastest first: tp-cp-ep-dp-pp"},
      {"--sequence-parallel",
       {},
       "/plan/sequence_parallel",
       on_off,
       "on|off",
       "split norms and dropout over tp"},
      {"--fused-attention", {}, "/plan/fused_attention", on_off, "on|off", "FlashAttention"},
      {"--cross-entropy-loss-fusion",
       {},
       "/plan/fused_cross_entropy",
       on_off,
       "on|off",
       "the loss in few passes over the logits, not one for each operation"},
      {"--train-metrics", {}, "/plan/train_metrics", integer, "N", "Composer's metrics of the loss"},
      {"--norm-fusion",
       {},
       "/plan/fused_norm",
       on_off,
       "on|off",
       "RMSNorm in one kernel, not one an operation as in eager PyTorch"},
      {"--rope-fusion",
       {},
       "/plan/fused_rotary",
       on_off,
       "on|off",
       "rotary positions in one kernel, not one an operation"},
      {"--swiglu-fusion",
       {},
       "/plan/fused_activation",
       on_off,
       "on|off",
       "a gated activation in one kernel, not two"},
      {"--adam-fusion",
       {},
       "/plan/fused_adam",
       on_off,
       "on|off",
       "Adam in one kernel, not one an operation (PyTorch: fused=True)"},
      {"--step-fusion",
       {},
       "/plan/fused_step",
       on_off,
       "on|off",
       "Adam's kernel copies, unscales and clips gradients too, not passes of their own"},
      {"--overlap-grad-reduce",
       {},
       "/plan/overlap_grad_reduce",
       on_off,
       "on|off",
       "reduce gradients beside backward"},
      {"--overlap-p2p", {}, "/plan/overlap_p2p", on_off, "on|off", "pipeline messages beside compute"},
      {"--cuda-graph",
       {"--enable-cuda-graph"},
       "/plan/cuda_graph",
       on_off,
       "on|off",
       "launch passes as CUDA graphs"},
      {"--one-queue", {}, "/plan/one_queue", on_off, "on|off", "launch order is execution order"},
      {"--bucket", {}, "/plan/bucket", text, "BYTES", "gradient bucket, such as 160MB"},
      {"--zero", {}, "/plan/zero", integer, "0..3", "shard optimizer state, gradients, parameters"},
      {"--zero-shard", {}, "/plan/zero_shard", integer, "N", "ranks of a sharding group; default: dp"},
      {"--overlap-param-gather",
       {},
       "/plan/overlap_param_gather",
       on_off,
       "on|off",
       "gather parameters beside the next forwards"},
      {"--reshard-after-forward",
       {},
       "/plan/reshard_after_forward",
       on_off,
       "on|off",
       "ZeRO-3: gather again for the backward"},
      {"--reduce-each-microbatch",
       {},
       "/plan/reduce_each_microbatch",
       on_off,
       "on|off",
       "ZeRO-2, 3: or after the last one"},
      {"--prefetch", {}, "/plan/prefetch", integer, "N", "ZeRO-3: layers gathered ahead"},
      {"--grad-reduce-precision",
       {},
       "/plan/grad_reduce",
       text,
       "NAME",
       "of gradients on the wire: fp32, bf16 or fp16"},
      {"--offload", {}, "/plan/offload", text, "NAME", "none, optimizer or activations"},
      {"--framework",
       {},
       "/plan/framework",
       text,
       "NAME",
       "megatron-2021, megatron-core, deepspeed-2021, deepspeed, fsdp1, fsdp, torchtitan, nanotron "
       "or internevo"},
      {"--layers-per-stage",
       {},
       "/plan/layers_per_stage",
       layers,
       "LIST|auto",
       "layers of each stage, comma separated; auto: by cost"},
      {"--pipeline-model-parallel-layout",
       {},
       "/plan/layout",
       text,
       "LAYOUT",
       "layers of each stage, as Et*2|(t*3|)*6,t*2L"},
      {"--decoder-first-pipeline-num-layers",
       {},
       "/plan/first_rank_layers",
       integer,
       "N",
       "layers of the first pipeline rank"},
      {"--decoder-last-pipeline-num-layers",
       {},
       "/plan/last_rank_layers",
       integer,
       "N",
       "layers of the last pipeline rank"},
      {"--account-for-embedding-in-pipeline-split",
       {},
       "/plan/embedding_as_layer",
       on_off,
       "on|off",
       "the embedding counts as a layer"},
      {"--account-for-loss-in-pipeline-split",
       {},
       "/plan/loss_as_layer",
       on_off,
       "on|off",
       "head and loss count as a layer"},
      {"--microbatch-group",
       {"--microbatch-group-size-per-virtual-pipeline-stage"},
       "/plan/microbatch_group",
       integer,
       "N",
       "interleaving: microbatches of a chunk before the next chunk; default: pp"},
      {"--sync-step",
       {},
       "/plan/sync_step",
       on_off,
       "on|off",
       "pipeline ranks take the optimizer step together"},
      {"--clip-grad",
       {},
       "/plan/clip_grad",
       number,
       "X",
       "scale gradients down to this norm over all parameters (Megatron-LM: 1.0); default: not"},
      {"--etp",
       {"--expert-tensor-parallel-size"},
       "/plan/etp",
       integer,
       "N",
       "tensor parallel inside an expert"},
      {"--moe-imbalance",
       {},
       "/plan/moe_imbalance",
       number,
       "X",
       "rows of the busiest experts over an even share"},
      {"--moe-capacity",
       {"--moe-expert-capacity-factor"},
       "/plan/moe_capacity",
       number,
       "X",
       "experts padded to X even shares; 0: dropless"},
      {"--cp-comm-type", {}, "/plan/cp_comm_type", text, "NAME", "p2p (ring), allgather or a2a (Ulysses)"},
      {"--tp-comm-overlap",
       {},
       "/plan/tp_comm_overlap",
       on_off,
       "on|off",
       "tensor-parallel collectives and GEMMs in chunks"},
      {"--tp-backward-overlap",
       {"--async-tensor-model-parallel-allreduce"},
       "/plan/tp_backward_overlap",
       on_off,
       "on|off",
       "tensor-parallel collectives beside backward GEMMs"},
      {"--attention-kernel",
       {},
       "/attention_kernel",
       text,
       "NAME",
       "another than the profile's default: flash-1, flash-2 or triton"},
      {"--norm-kernel",
       {},
       "/norm_kernel",
       text,
       "NAME",
       "another than the profile's default: persistent (apex's FastLayerNorm)"},
      {"--engine", {}, "/engine", text, "NAME", "simgrid (shares links) or reference (longest path)"},
      {"--fold", {}, "/fold", text, "auto|none", "simulate identical replicas once, or every rank"},
      {"--placement", {}, "/placement", text, "NAME", "nodes of the job: compact, scattered or random"},
      {"--pxn", {}, "/pxn", on_off, "on|off", "messages to another rail leave through that rail's NIC"},
      {"--stage-nodes",
       {},
       "/stage_nodes",
       text,
       "LIST",
       "nodes of each pipeline rank, where they differ: 2*dgx-h100,2*dgx-a100"},
      {"--slow",
       {},
       "/slow",
       text,
       "LIST",
       "rank=17:0.8, nvlink=NODE.GPU:0.5, nic=NODE.NIC:0.5, link=NAME:0 (down), comma separated"},
      {"--jitter", {}, "/jitter", number, "X", "coefficient of variation of compute"},
      {"--message-jitter", {}, "/message_jitter", number, "X", "coefficient of variation of messages"},
      {"--iterations",
       {},
       "/iterations",
       integer,
       "N",
       "iterations; more than one give mean and percentiles"},
      {"--seed", {}, "/seed", integer, "N", "of jitter and of random placement"},
  };
  return flags;
}

void add_scenario_flags(CLI::App& verb, GivenFlags& given) {
  verb.add_option("scenario", given.file, "scenario file")->option_text("[SCENARIO.json]");
  for (const Flag& flag : scenario_flags()) {
    verb.add_option_function<std::string>(
            all_names(flag), [&given, &flag](const std::string& value) { given.values[flag.name] = value; },
            flag.help)
        ->option_text(flag.value)
        ->take_last()
        ->group("Experiment");
  }
}

void write_flags(const GivenFlags& given, ScenarioSource& source) {
  for (const Flag& flag : scenario_flags()) {
    const auto value = given.values.find(flag.name);
    if (value == given.values.end()) continue;
    if (flag.pointer.starts_with("/plan/") && !source.json.value("plan", Json::object()).is_object()) {
      throw InputError({source.file, "/plan", "must be a JSON object", "", ""});
    }
    source.json[Json::json_pointer(flag.pointer)] = parse_value(flag, value->second);
    source.flag_of[flag.pointer] = flag.name;
  }
}

ScenarioSource collect(const GivenFlags& given) {
  ScenarioSource source;
  source.file = given.file;
  if (!given.file.empty()) source.json = JsonReader::open(given.file).json();
  write_flags(given, source);
  return source;
}

}  // namespace rehearse
