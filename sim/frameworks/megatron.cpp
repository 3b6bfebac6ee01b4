#include <fmt/core.h>

#include <algorithm>

#include "frameworks/imported.h"
#include "frameworks/megatron_deepspeed.h"
#include "frameworks/megatron_flags.h"
#include "frameworks/megatron_hybrid.h"
#include "frameworks/megatron_mindspeed.h"
#include "frameworks/megatron_options.h"
#include "frameworks/megatron_partition.h"
#include "frameworks/megatron_sharding.h"
#include "frameworks/megatron_slime.h"
#include "frameworks/megatron_swift.h"
#include "frameworks/megatron_text.h"
#include "frameworks/optimizer_note.h"

namespace rehearse {

namespace {

constexpr std::size_t kPartsOfShape = 3;
constexpr std::int64_t kMaxBucketElements = 1'000'000'000'000;  // elements, above those of any model

Json direct_value(const MegatronFlags& flags, const MegatronOption& option) {
  switch (option.takes) {
    case OptionTakes::integer:
      return flags.integer(option.name());
    case OptionTakes::number:
      return flags.number(option.name());
    case OptionTakes::text:
    case OptionTakes::list:
      return flags.text(option.name());
    case OptionTakes::nothing:
      return !option.off;
  }
  return nullptr;
}

class MegatronReader {
 public:
  MegatronReader(const MegatronFlags& flags, bool is_slime) : flags_(flags), is_slime_(is_slime) {}

  Imported read() {
    imported_.scenario = {{"schema", "rehearse.scenario/1"}, {"title", "From " + flags_.file()}};
    imported_.notes = flags_.notes();
    world();
    plan_ = {{"framework", "megatron-core"}};
    // Features that are off in Megatron-LM by default.
    for (const char* key : {"sequence_parallel", "overlap_grad_reduce", "overlap_param_gather"})
      plan_[key] = false;
    for (const MegatronOption& option : megatron_options())
      if (!option.pointer.empty() && flags_.has(option.name()))
        plan_[option.pointer.substr(6)] = direct_value(flags_, option);
    precision();
    graphs();
    clipping();
    add_sharding(flags_, imported_.scenario, plan_, imported_.notes);
    pipeline();
    recompute();
    context();
    add_swift_defaults(flags_, plan_, imported_.notes);
    if (plan_.value("recompute", "") == "none") plan_.erase("recompute");  // ms-swift's word
    add_megatron_deepspeed(flags_, plan_, imported_.notes);
    const std::vector<ImportedOption> of_engine = add_engine_file(flags_, plan_, imported_);
    add_mindspeed(flags_, plan_, imported_.notes);
    if (is_slime_) add_slime(flags_, imported_.scenario, plan_, imported_.notes);
    optimizer();
    unmodelled();
    model();
    imported_.scenario["plan"] = plan_;
    imported_.options = flags_.options();
    imported_.options.insert(imported_.options.end(), of_engine.begin(), of_engine.end());
    settle_fates(imported_);
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  void model() {
    if (flags_.is_over("/model")) return;
    const std::vector<std::string> missing = missing_of_shape(flags_);
    if (missing.empty()) imported_.model = megatron_model(flags_, imported_.notes);
    if (missing.empty() && assumes_vocabulary(flags_)) imported_.assumed.insert("vocabulary");
    if (missing.size() >= kPartsOfShape) note("the text has no model shape: pass --model");
    if (!missing.empty() && missing.size() < kPartsOfShape)
      note(fmt::format("the text has no {}, so its network is not read: pass --model", join(missing)));
  }

  // Notes unsupported options, except where their values mean the counted behaviour. One note names all
  // options of one effect.
  void unmodelled() {
    std::vector<std::pair<std::string, std::vector<std::string>>> effects;
    for (const MegatronOption& option : megatron_options()) {
      if (option.role != OptionRole::unmodelled || !flags_.has(option.name())) continue;
      const std::vector<std::string> values = flags_.values(option.name());
      const bool is_counted = option.is_default(join(values, " ")) ||
                              (!values.empty() && std::ranges::all_of(values, [&](const std::string& each) {
                                return option.is_default(each);
                              }));
      const bool is_read = option.name() == "--deepspeed-config" && has_engine_file(flags_);
      if (is_counted || is_read) continue;
      omit(imported_, join({option.name(), join(values, " ")}, values.empty() ? "" : " "), option.effect,
           option.changes);
      auto same = std::ranges::find(effects, option.effect, [](const auto& each) { return each.first; });
      if (same == effects.end()) same = effects.insert(same, {option.effect, {}});
      same->second.push_back(option.name());
    }
    for (const auto& [effect, names] : effects)
      note(fmt::format("{} {} ignored: {}", join(names), names.size() > 1 ? "are" : "is", effect));
  }

  void optimizer() { note_optimizer("--optimizer", flags_.text_or("--optimizer", "adam"), imported_); }

  // Whether the launcher has a number of nodes that the text does not decide.
  bool nodes_are_open() const {
    return !flags_.has("--nnodes") && std::ranges::any_of(flags_.options(), [](const ImportedOption& option) {
      return option.name == "--nnodes";
    });
  }

  void world() {
    if (flags_.is_over("/gpus") || !flags_.has("--nproc-per-node") || nodes_are_open()) return;
    const std::string per_node = flags_.text("--nproc-per-node"), nodes = flags_.text_or("--nnodes", "1");
    const auto is_count = [](const std::string& word) {
      return !word.empty() && word.size() < 8 && word.find_first_not_of("0123456789") == std::string::npos;
    };
    if (!is_count(per_node) || !is_count(nodes))
      return note(fmt::format("{} {} is no number in the text: the plan gives the number of GPUs",
                              is_count(per_node) ? "--nnodes" : "--nproc-per-node",
                              is_count(per_node) ? nodes : per_node));
    imported_.scenario["gpus"] = std::stoll(per_node) * std::stoll(nodes);
  }

  void precision() {
    plan_["precision"] = "fp32";
    if (flags_.has("--bf16") && flags_.has("--fp16"))  // arguments.py, validate_args: assert not args.bf16
      flags_.fail("--fp16", "must not be given beside --bf16", "one of --bf16 and --fp16");
    if (flags_.has("--bf16")) plan_["precision"] = "bf16";
    if (flags_.has("--fp16")) plan_["precision"] = "fp16";
    if (flags_.has("--fp8-format")) fp8();
    if (flags_.has("--fp4-format")) fp4();
    gradients();
    bucket();
    const std::string backend = flags_.text_or("--attention-backend", "auto");
    const char* const usual = is_megatron_deepspeed(flags_) ? "local" : "transformer_engine";
    const bool is_local = flags_.text_or("--transformer-impl", usual) == "local";
    if (backend == "unfused" || backend == "local" || (is_local && !flags_.has("--use-flash-attn")))
      plan_["fused_attention"] = false;
    if (is_local) note("--transformer-impl local: norms are counted with Transformer Engine's kernels");
    if (flags_.has("--no-masked-softmax-fusion") || flags_.has("--no-scaled-masked-softmax-fusion"))
      plan_["fused_softmax"] = false;
    if (flags_.has("--no-rope-fusion")) plan_["fused_rotary"] = false;
    if (flags_.has("--no-gradient-accumulation-fusion") && !flags_.has("--gemm-gradient-accumulation-fusion"))
      plan_["fused_accumulation"] = false;
    if (flags_.has("--no-bias-swiglu-fusion")) plan_["fused_activation"] = false;
    if (flags_.has("--num-experts")) {
      plan_["fused_permute"] = flags_.has("--moe-permute-fusion");
      plan_["fused_router"] = flags_.has("--moe-router-fusion");
      if (flags_.has("--use-transformer-engine-op-fuser") && plan_.value("fp8_scaling", "") == "mx")
        plan_["fused_experts"] = true;
      dispatcher();
    }
    plan_["fused_cross_entropy"] = flags_.has("--cross-entropy-loss-fusion");
    if (flags_.has("--cross-entropy-loss-fusion") && flags_.has("--cross-entropy-fusion-impl"))
      plan_["cross_entropy_fusion_impl"] = flags_.text("--cross-entropy-fusion-impl");
    if (flags_.has("--fp8-output-proj")) plan_["fp8_output_proj"] = true;
    if (flags_.has("--first-last-layers-bf16")) {  // transformer_config.py: one at either end unless told
      plan_["bf16_first_layers"] = flags_.integer_or("--num-layers-at-start-in-bf16", 1);
      plan_["bf16_last_layers"] = flags_.integer_or("--num-layers-at-end-in-bf16", 1);
    }
    if (flags_.has("--fp8-dot-product-attention")) plan_["fp8_dot_product_attention"] = true;
  }

  // Gradients are fp32 in bf16 training, and where the flag says so. Otherwise they have the type of the
  // parameters, and the optimizer copies them (megatron/training/arguments.py,
  // accumulate_allreduce_grads_in_fp32; core/distributed/param_and_grad_buffer.py, grad_dtype).
  void gradients() {
    if (has_deepspeed_engine(flags_)) return;  // whose gradients have the type of the parameters
    const bool in_bf16 = flags_.has("--grad-reduce-in-bf16");
    const bool in_fp16 = plan_["precision"] == "fp16" && !flags_.has("--accumulate-allreduce-grads-in-fp32");
    if (in_bf16 || in_fp16) plan_["grad_reduce"] = in_bf16 ? "bf16" : "fp16";
    if (flags_.has("--fp32-allreduce")) plan_["grad_reduce"] = "fp32";
    const bool mixed = plan_["precision"] != "fp32";
    if (mixed && (in_bf16 || in_fp16)) {
      if (plan_.value("recipe", "") == "fp8-weights")
        note("gradients of fp8 parameters are counted in fp32; --grad-reduce-in-bf16 halves them");
      else
        plan_["recipe"] = "sagemaker";
    }
  }

  // The flag counts elements, in the precision in which gradients are reduced.
  void bucket() {
    if (!flags_.has("--ddp-bucket-size")) return;
    const std::int64_t elements = flags_.integer("--ddp-bucket-size");
    if (elements < 1 || elements > kMaxBucketElements)
      flags_.fail("--ddp-bucket-size", fmt::format("must be from 1 to {}", kMaxBucketElements));
    plan_["bucket"] = fmt::format("{}B", elements * (plan_.contains("grad_reduce") ? 2 : 4));
  }

  // core/enums.py, Fp4Recipe.
  void fp4() {
    plan_["precision"] = "fp4";
    const std::string recipe = flags_.text_or("--fp4-recipe", "nvfp4");
    if (recipe != "nvfp4") note("--fp4-recipe " + recipe + " is modelled as nvfp4");
  }

  // core/enums.py, Fp8Recipe.
  void fp8() {
    plan_["precision"] = "fp8";
    const std::string recipe = flags_.text_or("--fp8-recipe", "delayed");
    if (recipe == "tensorwise" || recipe == "blockwise") plan_["fp8_scaling"] = "current";
    if (recipe == "mxfp8") plan_["fp8_scaling"] = "mx";
    if (recipe == "blockwise")
      note("--fp8-recipe blockwise is modelled as tensorwise: one scale per block costs the casts more time");
    if (recipe == "custom") note("--fp8-recipe custom is modelled as delayed");
    if (flags_.has("--fp8-param-gather")) plan_["recipe"] = "fp8-weights";
  }

  // core/transformer/transformer_config.py: flex runs DeepEP by default, and needs several expert-parallel
  // ranks. Older flags mean the same.
  void dispatcher() {
    const std::string type = flags_.text_or("--moe-token-dispatcher-type", "allgather");
    if (flags_.integer_or("--expert-model-parallel-size", 1) == 1 || is_megatron_deepspeed(flags_)) return;
    if (type == "allgather")
      note(
          fmt::format("--moe-token-dispatcher-type {}: tokens are priced as an all-to-all; the all-gather of "
                      "every rank's tokens moves more bytes",
                      flags_.has("--moe-token-dispatcher-type") ? type : "allgather, Megatron-LM's default"));
    if (type != "flex") return;
    const std::string backend = flags_.text_or("--moe-flex-dispatcher-backend", "deepep");
    if (backend != "deepep" && backend != "hybridep") {
      note("--moe-flex-dispatcher-backend " + backend + " is modelled as alltoall");
      return;
    }
    plan_["moe_dispatcher"] = backend;
    for (const std::string& flag :
         {std::string("--moe-flex-dispatcher-num-sms"), "--moe-" + backend + "-num-sms"})
      if (flags_.has(flag)) plan_["moe_dispatcher_sms"] = flags_.integer(flag);
  }

  // core/transformer/cuda_graph_config.py: an empty list, once "full", is whole layers; full_iteration was a
  // scope before it was an implementation.
  void graphs() {
    const bool old = flags_.has("--enable-cuda-graph") || flags_.has("--external-cuda-graph");
    const std::string impl = flags_.text_or("--cuda-graph-impl", old ? "local" : "none");
    if (impl == "none") return;
    plan_["cuda_graph"] = true;
    std::vector<std::string> modules;
    for (const char* flag : {"--cuda-graph-modules", "--cuda-graph-scope"})
      if (flags_.has(flag)) modules = flags_.values(flag);
    const auto names = [&](const char* module) { return std::ranges::count(modules, module) > 0; };
    if (impl == "full_iteration" || names("full_iteration")) return;
    if (modules.empty() || names("full")) modules = graphable_modules();
    plan_["cuda_graph_modules"] = join(modules, ",");
  }

  // CUDA-graph modules of the layers that the model has.
  std::vector<std::string> graphable_modules() const {
    std::vector<std::string> modules;
    if (const auto hybrid = hybrid_pattern(flags_)) {
      for (const auto& [letter, module] :
           {std::pair{'*', "attn"}, {'M', "mamba"}, {'-', "mlp"}, {'E', "moe"}})
        if (hybrid->layers.find(letter) != std::string::npos) modules.emplace_back(module);
      return modules;
    }
    modules = {"attn", flags_.has("--num-experts") ? "moe" : "mlp"};
    if (flags_.has("--moe-layer-freq") &&
        join(flags_.values("--moe-layer-freq"), "").find("[0]") != std::string::npos)
      modules.emplace_back("mlp");
    return modules;
  }

  // megatron/training/arguments.py: the default is 1; optimizer.py clips where the value is above 0.
  void clipping() {
    const double norm = flags_.number_or("--clip-grad", 1);
    if (norm > kMaxClipGrad) flags_.fail("--clip-grad", fmt::format("must be at most {:g}", kMaxClipGrad));
    plan_["clip_grad"] = std::max(norm, 0.0);
  }

  void pipeline() {
    if (flags_.has("--num-layers-per-virtual-pipeline-stage")) {
      const std::int64_t per_stage = flags_.integer("--num-layers-per-virtual-pipeline-stage");
      const std::int64_t unit = per_stage * flags_.integer_or("--pipeline-model-parallel-size", 1);
      const std::int64_t layers = flags_.integer("--num-layers");
      if (unit < 1 || layers % unit != 0)
        flags_.fail("--num-layers-per-virtual-pipeline-stage",
                    fmt::format("must divide the {} layers of each pipeline rank", layers));
      plan_["vpp"] = layers / unit;
    }
    if (const auto hybrid = hybrid_pattern(flags_); hybrid && !hybrid->stages.empty()) {
      plan_["layers_per_stage"] = hybrid->stages;
      const std::int64_t ranks = flags_.integer_or("--pipeline-model-parallel-size", 1);
      const auto stages = static_cast<std::int64_t>(hybrid->stages.size());
      if (ranks > 0 && stages % ranks == 0) plan_["vpp"] = stages / ranks;
    }
    if (plan_.value("vpp", 1) == 1) plan_.erase("microbatch_group");  // of chunks alone
    add_partition(flags_, plan_, imported_.notes);
    if (flags_.has("--use-tp-pp-dp-mapping")) plan_["order"] = "tp-cp-ep-pp-dp";
    const std::int64_t pp = flags_.integer_or("--pipeline-model-parallel-size", 1);
    if (flags_.has("--enable-zero-bubble"))
      plan_["schedule"] =
          flags_.integer_or("--zero-bubble-max-pending-backward", pp) > pp ? "zb-h2" : "zb-h1";
    if (flags_.has("--use-dualpipev")) plan_["schedule"] = "dualpipe-v";  // FlagScale
    if (!flags_.has("--zero-bubble-v-schedule")) return;
    const std::string memory = flags_.text_or("--zero-bubble-v-schedule-mem-setup", "zb");
    plan_["schedule"] = memory == "half" ? "v-half" : memory == "min" ? "v-min" : "zb-v";
  }

  void recompute() {
    // The names before v0.9.
    const bool checkpoints = flags_.has("--checkpoint-activations");
    if (checkpoints || flags_.has("--activations-checkpoint-method")) {
      plan_["recompute"] = "full";
      plan_["recompute_method"] = flags_.text_or("--activations-checkpoint-method", "uniform");
      const char* const older =
          checkpoints ? "--checkpoint-num-layers" : "--activations-checkpoint-num-layers";
      plan_["recompute_num_layers"] = flags_.integer_or(older, 1);
    }
    if (flags_.has("--recompute-activations")) plan_["recompute"] = "selective";
    if (plan_.value("recompute", "") != "full")  // Megatron-LM does not read them then
      for (const char* key : {"recompute_method", "recompute_num_layers"}) plan_.erase(key);
    std::vector<std::string> modules;
    if (flags_.has("--recompute-modules")) modules = flags_.values("--recompute-modules");
    if (flags_.has("--moe-layer-recompute")) {
      plan_["recompute"] = "selective";
      if (modules.empty()) modules.emplace_back("core_attn");
      if (std::ranges::count(modules, "moe") == 0) modules.emplace_back("moe");
    }
    if (!modules.empty() && plan_.value("recompute", "") == "selective")
      plan_["recompute_modules"] = join(modules, ",");
    const auto hybrid = hybrid_pattern(flags_);
    const bool attends = !hybrid || (hybrid->layers + hybrid->module).find('*') != std::string::npos;
    if (modules.empty() && !attends && plan_.value("recompute", "") == "selective") {
      plan_.erase("recompute");  // of core_attn, the modules by default
      note("selective recompute is ignored: it recomputes attention, which no layer of the pattern has");
    }
  }

  void context() {
    if (!flags_.has("--cp-comm-type")) return;
    const std::string type = flags_.text("--cp-comm-type");
    if (type == "a2a+p2p") note("--cp-comm-type a2a+p2p is modelled as p2p");
    const bool ring = type == "a2a+p2p", gathers = type == "all_gather";
    plan_["cp_comm_type"] = ring ? "p2p" : gathers ? "allgather" : type;
    const auto& all = flags_.values("--cp-comm-type");
    if (std::ranges::count(all, type) != std::ssize(all))
      note("--cp-comm-type differs between layers: all are counted with " + type);
  }

  const MegatronFlags& flags_;
  bool is_slime_;
  Imported imported_;
  Json plan_;
};

}  // namespace

Imported read_megatron(ScriptFlags found, const std::string& file, const ImportRequest& request) {
  const bool slime = is_slime(found);
  if (slime) add_slime_defaults(found);
  const MegatronFlags flags(std::move(found), file, request);
  return MegatronReader(flags, slime).read();
}

Imported import_megatron(const std::string& text, const std::string& file, const ImportRequest& request) {
  return read_megatron(megatron_text(text, file, request.shell), file, request);
}

}  // namespace rehearse
