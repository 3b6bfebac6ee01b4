#include "execute/training.h"

#include <fmt/core.h>

#include <limits>
#include <numeric>

#include "plan/frameworks/traits.h"
#include "plan/rules/nearest.h"
#include "plan/sharding.h"
#include "plan/work/shape.h"

namespace rehearse {

namespace {

class Limits {
 public:
  Limits(const Model& model, const Plan& plan) : model_(model), plan_(plan) {}

  std::vector<Violation> find() {
    of_model();
    if (model_.experts) of_experts(*model_.experts);
    of_split();
    of_sharding();
    if (found_.empty()) of_kernels();
    return std::move(found_);
  }

 private:
  void require(bool holds, const std::string& field, const std::string& rule, const std::string& values,
               const std::string& nearest) {
    if (!holds) found_.push_back({"", field, rule, values, nearest});
  }

  void of_model() {
    require(!model_.latent || plan_.fused_attention, "fused_attention",
            "latent attention can be executed only as one fused kernel", "fused_attention = false", "true");
    require(!model_.latent || model_.latent->rope_head_dim % 2 == 0, "model",
            "rotary positions need an even head dimension", model_.name,
            "a model with an even qk_rope_head_dim");
    require(model_.mtp_layers <= 1, "model", "at most one MTP layer can be executed",
            fmt::format("mtp_layers = {}", model_.mtp_layers), "num_nextn_predict_layers = 1");
    require(plan_.loss_fusion == LossFusion::native, "cross_entropy_fusion_impl",
            "Transformer Engine's loss cannot be executed yet", to_string(plan_.loss_fusion), "native");
    require(!model_.attention_sinks, "model", "attention sinks cannot be executed yet", model_.name,
            "a model without them");
    require(model_.norm == Norm::rms || model_.norm == Norm::layer, "model",
            "LayerNorm without a bias cannot be executed yet", model_.name, "a model with RMSNorm");
    require(model_.norm_place == NormPlace::before, "model",
            "norms after a branch, or shared by two, cannot be executed yet", model_.name,
            "a model with a norm before each branch");
    for (const auto& [has, part] :
         {std::pair{model_.qk_norm_span != QkNormSpan::head, "norms with weights for every head"},
          {model_.head_bias, "biases of the logits"},
          {model_.embedding_norm, "norms of the embedding"},
          {model_.recurrence.has_value(), "recurrences in attention's place"},
          {model_.indexer.has_value(), "indexers of sparse attention"},
          {model_.attention_gate, "gates of what is attended"},
          {!model_.shapes.empty(), "layers of more than one size"},
          {model_.mamba_beside_attention, "state spaces beside attention"},
          {model_.state_space && !model_.state_space->norm, "state spaces without a norm"},
          {model_.depth_block > 0 || model_.streams > 1, "sums over depth and copies of rows"},
          {model_.compressed.has_value(), "compressed keys"},
          {model_.experts && model_.experts->latent_norm, "norms of latent rows"},
          {model_.v_head_dim > 0 && !model_.latent, "values of another width than keys"},
          {model_.values_are_keys || model_.value_norm, "keys as values"},
          {model_.experts && model_.experts->own_norms, "experts with norms of their own"},
          {model_.caps_scores || model_.caps_logits, "caps of scores and of logits"},
          {!model_.rotary.empty(), "layers without rotary positions"},
          {model_.qk_norm_plain, "norms of queries and keys without weights"},
          {model_.activation_weights > 0, "activations with weights"},
          {model_.per_layer_width > 0 || model_.alternating > 1 || model_.laurel_rank > 0,
           "embeddings of layers and copies of rows"},
          {plan_.images > 0, "towers"},
          {model_.encoder_layers > 0 || model_.bidirectional || model_.token_types > 0 ||
               model_.head_transform,
           "encoders"}})
      require(!has, "model", fmt::format("{} cannot be executed yet", part), model_.name,
              "a model without them");
    require(!model_.window_in_chunks || plan_.seq <= model_.window, "model",
            "attention within chunks cannot be executed yet", model_.name,
            fmt::format("seq of at most {}", model_.window));
    require(model_.positions != Positions::alibi, "model", "ALiBi positions cannot be executed yet",
            model_.name, "a model with learned or rotary positions");
    require(plan_.fused_attention || !plan_.fused_softmax || shape_on_one_rank(model_, plan_).fused_softmax,
            "fused_attention",
            "softmax can be executed only as a fused kernel; Megatron-LM 2021 fuses it for 16-bit scores, 17 "
            "to 2048 tokens in multiples of 4, and heads in multiples of 4",
            "framework = " + to_string(plan_.framework), "framework = megatron-core, or fused attention");
    for (const auto& [field, fused] :
         {std::pair{"fused_softmax", plan_.fused_softmax || plan_.fused_attention},
          {"fused_norm", plan_.fused_norm},
          {"fused_rotary", plan_.fused_rotary},
          {"fused_activation", plan_.fused_activation},
          {"fused_permute", plan_.fused_permute},
          {"fused_router", plan_.fused_router},
          {"fused_adam", plan_.fused_adam},
          {"fused_step", plan_.fused_step}})
      require(fused, field,
              "softmax, norms, rotary positions, gated activations, routers, permutations and the optimizer "
              "step can be executed only as fused kernels",
              fmt::format("{} = false", field), "true");
    // Latent attention's rotary kernel is always one kernel, scaled by YaRN or not.
    require(model_.latent || !plan_.fused_rotary || shape_on_one_rank(model_, plan_).fused_rotary, "model",
            "rotary positions with YaRN scaling cannot be executed unfused yet", model_.name,
            "a model without rope_scaling");
    require(!shape_on_one_rank(model_, plan_).wide_norms, "framework",
            "norms that read fp32 copies cannot be executed yet",
            fmt::format("framework = internevo, precision = {}", to_string(plan_.precision)),
            "framework deepspeed, or precision = fp32");
    require(!shape_on_one_rank(model_, plan_).packs_heads, "framework",
            "copies of the heads before attention cannot be executed yet", "framework = nanotron",
            "framework megatron-core with recipe nanotron");
    require(!traits(plan_).gathers_logits, "framework",
            "logits that every tensor-parallel rank gathers cannot be executed yet",
            "framework = aleph-scaling", "framework nanotron, or megatron-core");
    const bool adds_biases = model_.attention_out_bias || model_.mlp_bias;
    require(!(shape_on_one_rank(model_, plan_).expands_biases && adds_biases), "framework",
            "biases that autocast writes out cannot be executed yet",
            "framework = megatron-2021, recipe = autocast", "framework megatron-core");
    require(!plan_.fused_experts, "fused_experts", "fused experts cannot be executed yet",
            "fused_experts = true", "false");
    require(!plan_.sends_parts(), "scatter_gather",
            "scatter-gather of pipeline messages cannot be executed yet", "scatter_gather = true", "false");
    require(!plan_.pairs_passes(), "overlap_experts", "overlap of passes cannot be executed yet",
            "overlap_experts = true", "false");
    require(!is_quantized(plan_.precision), "precision",
            fmt::format("linear layers in {} cannot be executed yet", to_string(plan_.precision)),
            "precision = " + to_string(plan_.precision), "bf16");
    require(plan_.grad_reduce != Precision::fp16 || scales_loss(plan_), "grad_reduce",
            "gradients in fp16 need a scaled loss, which only precision fp16 has",
            fmt::format("grad_reduce = fp16, precision = {}", to_string(plan_.precision)), "fp32 or bf16");
    require(plan_.sync_step || !scales_loss(plan_), "sync_step",
            "precision fp16 needs a synchronized step: all ranks skip it when the gradients of one overflow",
            "precision = fp16", "on, or precision = bf16");
  }

  // Tokens visit the experts in turn (kernels/call/tokens.h).
  void of_experts(const Experts& experts) {
    require(!experts.shared_gate, "model", "gates of shared experts cannot be executed yet", model_.name,
            "a model without them");
    require(!experts.linear_bias && !experts.clamped, "model",
            "biases and clamped activations of experts cannot be executed yet", model_.name,
            "a model without them");
    require(!plan_.weights_rows_at_home(), "core_release",
            "router weights applied after combine cannot be executed yet",
            fmt::format("core_release = {}", plan_.core_release), "0 or 13");
    require(!plan_.sends_rows_once(), "moe_dispatcher",
            "dispatch with one copy per rank (DeepEP, HybridEP) cannot be executed yet",
            "moe_dispatcher = " + to_string(plan_.dispatcher), "alltoall");
    require(plan_.expert_load() == 1, plan_.moe_capacity > 0 ? "moe_capacity" : "moe_imbalance",
            "experts receive equal loads when they are executed",
            fmt::format("moe_capacity = {}, moe_imbalance = {}", plan_.moe_capacity, plan_.moe_imbalance),
            plan_.moe_capacity > 0 ? "0 or 1" : "1");
    const std::int64_t parts = std::int64_t{plan_.cp} * (plan_.sequence_parallel ? plan_.tp : 1);
    const std::int64_t round = experts.count / std::gcd(experts.count, experts.per_token);
    require(plan_.seq % (parts * round) == 0, "seq",  // NOLINT(clang-analyzer-core.DivideZero): count > 0
            "the tokens of a sequence on a rank must divide evenly over the experts (round-robin routing)",
            fmt::format("seq = {} over {} ranks, experts = {}, top-k = {}", plan_.seq, parts, experts.count,
                        experts.per_token),
            in_words(multiples_around(plan_.seq, std::numeric_limits<std::int64_t>::max(), parts * round)));
  }

  void of_split() {
    const bool splits_chunks = plan_.cp > 1 && plan_.sequence_parallel && plan_.tp > 1 && plan_.tp % 2 != 0;
    require(!splits_chunks || !model_.dropout, "tp",
            "dropout with context and sequence parallelism needs an even tp",
            fmt::format("tp = {}, cp = {}, a model with dropout", plan_.tp, plan_.cp),
            "an even tp, cp = 1, or a model without dropout");
    require(model_.kv_heads % plan_.tp == 0, "tp", "key and value heads cannot be shared by ranks yet",
            fmt::format("kv heads = {}, tp = {}", model_.kv_heads, plan_.tp), "tp that divides the kv heads");
    require(!plan_.tp_comm_overlap, "tp_comm_overlap",
            "overlap of tensor-parallel collectives with GEMMs cannot be executed yet",
            "tp_comm_overlap = on", "off");
    const bool in_groups = plan_.recompute == Recompute::full &&
                           plan_.recompute_method == RecomputeMethod::uniform && plan_.recompute_layers > 1;
    require(!in_groups || plan_.zero < 3, "recompute_num_layers",
            "layers that are recomputed together need all their parameters at once",
            fmt::format("zero = 3, recompute layers = {}", plan_.recompute_layers), "1, or zero = 2");
  }

  void of_sharding() {
    require(!owns_parameters(plan_), "framework",
            "ranks that own whole parameters and broadcast them cannot be executed yet",
            "framework = internevo, zero = 1", "framework deepspeed, or zero = 0");
    require(plan_.zero == 0 || plan_.zero_shard != 1, "zero_shard",
            "a sharding group of one rank shards nothing", "zero shard = 1", "zero = 0, or zero shard = 0");
    require(!model_.shares_embedding() || !is_v_shaped(plan_.schedule) || plan_.dp == 1, "schedule",
            "a tied embedding on a V-shaped schedule cannot be executed with dp > 1 yet",
            fmt::format("schedule = {}, dp = {}", to_string(plan_.schedule), plan_.dp), "1f1b");
    require(!model_.shares_embedding() || !is_v_shaped(plan_.schedule) || plan_.offload != Offload::optimizer,
            "offload",
            "a tied embedding on a V-shaped schedule cannot be executed with optimizer offload yet",
            fmt::format("schedule = {}, offload = optimizer", to_string(plan_.schedule)),
            "none, or schedule 1f1b");
  }

  // Kernels that no rule above names.
  void of_kernels() {
    const auto look_at = [this](const Block& block, const std::vector<Kernel>& kernels) {
      for (const Kernel& kernel : kernels) {
        const KernelSupport support = support_of(block, kernel, plan_.precision);
        require(support.executed || !found_.empty(), "plan", "a type of kernel cannot be executed yet",
                fmt::format("{} (\"{}\" of {})", support.type, kernel.name, block.name),
                "the types that `rehearse doctor --kernels` lists as executed");
      }
    };
    for (const Block& block : make_work(model_, plan_).blocks)
      for (const auto* kernels :
           {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
        look_at(block, *kernels);
    Block scratch;
    scratch.role = BlockRole::optimizer;
    scratch.name = "optimizer";
    look_at(scratch, optimizer_kernels(1, plan_, scratch));
  }

  const Model& model_;
  const Plan& plan_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> not_executable(const Model& model, const Plan& plan) {
  return Limits(model, plan).find();
}

}  // namespace rehearse
