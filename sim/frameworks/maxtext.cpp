#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "frameworks/maxtext_remat.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/other_yaml.h"
#include "frameworks/plan_yaml.h"

namespace rehearse {

namespace {

// src/maxtext/configs/base.yml at e591f30c, with the values that are counted.
constexpr const char* kFullWidth = "the precision of the other kernels is counted";
constexpr const char* kXla = "the kernels of the profile are counted";
constexpr const char* kPlainExperts = "experts are counted without it";
constexpr std::array kIgnoredOfMaxtext = {
    CountedKey{"use_iota_embed", "false",
               "the embedding is counted as a lookup, not as a GEMM with one-hot rows: too fast",
               "more time"},
    CountedKey{"scan_layers", "true", "a scanned loop and unrolled layers are counted alike"},
    CountedKey{"weight_dtype", "\"float32\"", "parameters and optimizer state are counted in fp32",
               "less memory"},
    CountedKey{"grad_dtype", "\"float32\"", "gradients are counted in fp32", "less memory"},
    CountedKey{"mu_dtype", "\"\"", "moments are counted in fp32", "less memory"},
    CountedKey{"logits_dot_in_fp32", "false", "the logits are counted in the precision of the other GEMMs"},
    CountedKey{"cast_logits_to_fp32", "true", "the loss is counted over fp32 logits"},
    CountedKey{"activations_in_float32", "false", kFullWidth},
    CountedKey{"float32_logits", "false", kFullWidth},
    CountedKey{"float32_qk_product", "false", kFullWidth},
    CountedKey{"float32_gate_logits", "false", kFullWidth},
    CountedKey{"float32_weight_sum", "true", kFullWidth},
    CountedKey{"matmul_precision", "\"default\"", kFullWidth},
    CountedKey{"num_vocab_tiling", "1",
               "the logits of all tokens are counted at once, which takes more memory", "less memory"},
    CountedKey{"parameter_memory_host_offload", "false", "parameters are counted on the GPU",
               "less memory, more time"},
    CountedKey{"decoder_layer_input", "\"device\"", "inputs of layers are counted on the GPU",
               "less memory, more time"},
    CountedKey{"pipeline_fsdp_ag_once", "false", "weights are counted as gathered for each pass"},
    CountedKey{"pipeline_fsdp_ag_per_repeat", "false", "weights are counted as gathered for each pass"},
    CountedKey{"te_comm_gemm_overlap", "\"disabled\"", "no overlap of tensor-parallel messages is counted"},
    CountedKey{"compile_xla_flags", "\"\"", kXla},
    CountedKey{"context_parallel_load_balance", "true",
               "each rank is counted with an equal share of the causal attention"},
    CountedKey{"use_ring_of_experts", "false", kPlainExperts},
    CountedKey{"shard_exp_on_fsdp", "false", kPlainExperts},
    CountedKey{"megablox", "true", kXla},
    CountedKey{"sparse_matmul", "true", kXla},
    CountedKey{"use_tokamax_gmm", "false", kXla},
    CountedKey{"use_tokamax_splash", "false", kXla},
    CountedKey{"load_balance_loss_weight", "0", "the balancing loss is not counted"},
    CountedKey{"use_random_routing", "false", "tokens are counted as spread evenly"},
    CountedKey{"fused_qkv", "false",
               "a GEMM each is counted for queries, keys and values where the framework has it so"},
    CountedKey{"fused_mlp", "false",
               "a GEMM each is counted for gate and up projection where the framework has it so"},
    CountedKey{"z_loss_multiplier", "0", "the further loss over the logits is not counted"},
    CountedKey{"enable_diloco", "false", "gradients are counted as reduced in every step", "less time"},
    CountedKey{"use_dpo", "false", "one pass of one model is counted", "more memory, more time"},
    CountedKey{"use_multimodal", "false", "towers of pictures are not counted", "more memory, more time"},
    CountedKey{"custom_mesh", "\"\"", "ranks are counted in the order of the axes"},
    CountedKey{"custom_mesh_and_rule", "\"\"", "axes split the dimensions that base.yml names"},
    CountedKey{"logical_axis_rules", "null", "axes split the dimensions that base.yml names"},
    CountedKey{"mesh_axes", "null", "axes are counted in base.yml's order"},
    CountedKey{"optimize_mesh_for_tpu_v6e", "false", "ranks are counted in the order of the axes"}};

// Keys of the network with their supported values; with others the network is not read.
constexpr std::array kOfPlainNetworks = {CountedKey{"attention_type", "\"global\"", ""},
                                         CountedKey{"global_parameter_scale", "1", ""},
                                         CountedKey{"first_num_dense_layers", "0", ""},
                                         CountedKey{"shared_experts", "0", ""},
                                         CountedKey{"mtp_num_layers", "0", ""},
                                         CountedKey{"interleave_moe_layer_step", "1", ""},
                                         CountedKey{"inhomogeneous_layer_cycle_interval", "1", ""},
                                         CountedKey{"mlp_bias", "false", ""},
                                         CountedKey{"use_post_attn_norm", "false", ""},
                                         CountedKey{"use_post_ffw_norm", "false", ""},
                                         CountedKey{"share_kv_projections", "false", ""},
                                         CountedKey{"trainable_position_size", "-1", ""},
                                         CountedKey{"attn_logits_soft_cap", "0", ""},
                                         CountedKey{"final_logits_soft_cap", "0", ""},
                                         CountedKey{"partial_rotary_factor", "1", ""},
                                         CountedKey{"attention_sink", "false", ""},
                                         CountedKey{"attention_output_dim", "-1", ""},
                                         CountedKey{"nope_layer_interval", "-1", ""},
                                         CountedKey{"moba", "false", ""},
                                         CountedKey{"use_indexer", "false", ""}};

constexpr std::int64_t kMaxOfAxes = std::int64_t{1} << 30;

// The limit on each factor keeps a * b within 64 bits.
std::int64_t times(std::int64_t a, std::int64_t b) {
  return std::min(a * b, kMaxOfAxes);
}

std::int64_t whole_of(double value) {
  return static_cast<std::int64_t>(std::clamp(value, 0.0, 1e12));
}

// Degree of an axis over both meshes, within a slice and across slices. It is 0 where one of them takes the
// rest of the GPUs (-1).
std::int64_t axis(PlanYaml& from, const std::string& name, bool takes_rest = false) {
  std::int64_t size = 1;
  for (const std::string mesh : {"ici_", "dcn_"}) {
    const std::int64_t rest = -1, by_default = takes_rest && mesh == "ici_" ? rest : 1;
    const std::int64_t degree = from.integer(mesh + name + "_parallelism", by_default, "", rest);
    size = degree == rest ? 0 : times(size, std::min(degree, kMaxOfAxes));
  }
  return size;
}

// The key lists one function for each input projection: two make a gated MLP.
const char* activation_of_maxtext(PlanYaml& from) {
  const Json* functions = from.find("mlp_activations");
  if (functions == nullptr || (functions->is_array() && functions->size() == 2)) {
    from.ignore_unless("mlp_activations", Json::array({"silu", "linear"}),
                       "SwiGLU is counted, which has the same GEMMs");
    return "swiglu";
  }
  from.ignore_unless("mlp_activations", Json::array({"gelu"}), "a plain MLP with GELU is counted");
  return "gelu";
}

// The network, where it consists of base.yml's decoder blocks; null for any other network.
Json model_of_maxtext(PlanYaml& from) {
  for (const CountedKey& each : kOfPlainNetworks) {
    const Json* value = from.find(each.path);
    if (value == nullptr || *value == Json::parse(each.counted)) continue;
    from.note(each.path, value->dump().substr(0, 100) + " is ignored: the network is not read: pass --model");
    return nullptr;
  }
  const std::int64_t heads = from.integer("base_num_query_heads", 16),
                     mlp = from.integer("base_mlp_dim", 7168);
  Json config = {{"model_type", "megatron_gpt"},
                 {"num_hidden_layers", from.integer("base_num_decoder_layers", 16)},
                 {"hidden_size", from.integer("base_emb_dim", 2048)},
                 {"intermediate_size", mlp},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", from.integer("base_num_kv_heads", 16)},
                 {"head_dim", from.integer("head_dim", 128)},
                 {"vocab_size", from.integer("vocab_size", 32000)},
                 {"max_position_embeddings", from.integer("max_target_length", 2048)},
                 {"normalization", "RMSNorm"},
                 {"position_embedding_type", "rope"},
                 {"activation", activation_of_maxtext(from)},
                 {"qkv_bias", from.on("attention_bias")},
                 {"attention_out_bias", false},
                 {"mlp_bias", false},
                 {"qk_layernorm", from.on("use_qk_norm")},
                 {"hidden_dropout", from.on("enable_dropout", true) ? from.number("dropout_rate", 0) : 0.0},
                 {"attention_dropout", 0},
                 {"tie_word_embeddings", from.on("logits_via_embedding")}};
  from.find("dropout_rate");
  if (const std::int64_t experts = from.integer("num_experts", 1); experts > 1) {
    config["num_experts"] = experts;
    config["num_experts_per_tok"] = from.integer("num_experts_per_tok", 1);
    config["moe_intermediate_size"] = from.set_integer("base_moe_mlp_dim").value_or(mlp);
  }
  return config;
}

void add_model(PlanYaml& from) {
  constexpr std::array kBlocks = {"", "llama2", "mistral", "mixtral", "default", "qwen3"};
  const std::string block = from.text("decoder_block"), name = from.text("model_name");
  const bool is_named = !name.empty() && name != "default";
  const bool is_llama = std::ranges::find(kBlocks, block) != kBlocks.end();
  if (!is_named && is_llama) {
    from.imported.model = model_of_maxtext(from);
    return;
  }
  from.note(is_named ? "model_name" : "decoder_block",
            fmt::format("{} is not looked up: pass --model NAME|config.json", is_named ? name : block));
  for (const char* key :
       {"base_emb_dim", "base_num_query_heads", "base_num_kv_heads", "base_mlp_dim", "base_moe_mlp_dim",
        "base_num_decoder_layers", "head_dim", "vocab_size", "num_experts", "num_experts_per_tok",
        "mlp_activations", "logits_via_embedding", "enable_dropout", "dropout_rate"})
    if (from.find(key)) from.note(key, "is ignored: the network that --model names is counted");
}

// Degrees of the mesh, and of the groups that share weights (base.yml, logical_axis_rules): embed is split
// over fsdp, context and expert.
struct Mesh {
  std::int64_t tp = 1, pp = 1, cp = 1, ep = 1;
  std::int64_t shard = 0, copies = 1;  // shard: 0 where it takes the rest
  std::int64_t gpus = 0;               // 0 where not known
};

// An axis of -1 beside FSDP's takes the rest of the GPUs, where both are known.
void take_rest(std::int64_t& degree, std::int64_t given, const Mesh& mesh) {
  if (degree > 0) return;
  std::int64_t others = std::max<std::int64_t>(1, times(mesh.shard, mesh.copies));
  for (const std::int64_t each : {mesh.tp, mesh.pp, mesh.cp, mesh.ep})
    if (each > 0) others = times(others, each);
  degree = std::max<std::int64_t>(1, given / others);
}

Mesh mesh_of(PlanYaml& from, std::int64_t given) {
  Mesh mesh;
  mesh.tp = times(axis(from, "tensor"), axis(from, "tensor_sequence"));
  mesh.pp = axis(from, "pipeline");
  mesh.cp = times(axis(from, "context"), axis(from, "context_usp_ulysses"));
  mesh.ep = axis(from, "expert");
  mesh.shard = times(axis(from, "fsdp", true), axis(from, "fsdp_transpose"));
  mesh.copies = times(axis(from, "data"), axis(from, "diloco"));
  for (const char* other : {"sequence", "autoregressive", "context_autoregressive"})
    if (axis(from, other) != 1)
      from.note(std::string("ici_") + other + "_parallelism",
                "is ignored: this axis is not counted, and takes GPUs from the others");
  const bool has_rest = std::min({mesh.tp, mesh.pp, mesh.cp, mesh.ep}) == 0;
  if (has_rest && given == 0)
    from.imported.notes.emplace_back("an axis of -1 takes the GPUs that the others leave: pass --gpus");
  for (std::int64_t* each : {&mesh.tp, &mesh.pp, &mesh.cp, &mesh.ep}) take_rest(*each, given, mesh);
  const std::int64_t split = times(times(mesh.tp, mesh.pp), times(mesh.cp, mesh.ep));
  if (mesh.copies == 0)  // the rest
    mesh.copies =
        mesh.shard > 0 && given > 0 ? std::max<std::int64_t>(1, given / times(split, mesh.shard)) : 1;
  const std::int64_t others = times(split, mesh.copies);
  mesh.gpus = given > 0 ? given : times(others, mesh.shard);
  if (mesh.shard == 0 && mesh.gpus > 0) mesh.shard = std::max<std::int64_t>(1, mesh.gpus / others);
  const bool is_rest = !from.set_integer("dcn_data_parallelism");
  if (is_rest && mesh.gpus != 1 && from.integer("dcn_fsdp_parallelism", 1) == 1)
    from.imported.notes.emplace_back(
        "dcn_data_parallelism -1, the default, replicates weights across JAX's slices, on GPUs the "
        "nodes: here they are counted as sharded over all GPUs; pass --zero-shard, the GPUs of a node, for "
        "more "
        "than one");
  return mesh;
}

void add_mesh(PlanYaml& from, const Mesh& mesh, Json& plan) {
  for (const auto& [key, degree] :
       {std::pair{"tp", mesh.tp}, {"pp", mesh.pp}, {"cp", mesh.cp}, {"ep", mesh.ep}})
    if (degree > 1) plan[key] = degree;
  const std::int64_t group = times(times(mesh.shard, mesh.cp), mesh.ep);
  plan["zero"] = group == 1 ? 0 : 3;
  if (mesh.copies > 1 && group > 1 && mesh.ep == 1) plan["zero_shard"] = group;
  if (mesh.copies > 1 && mesh.ep > 1)
    from.imported.notes.emplace_back(
        "data parallelism beside expert parallelism is approximated: weights are counted as sharded over all "
        "replicas");
  const std::string exchange = from.choice(
      "context_parallel_strategy",
      {{"all_gather", "allgather"}, {"ring", "p2p"}, {"ulysses", "a2a"}, {"usp", "allgather"}}, "allgather");
  if (mesh.cp > 1) plan["cp_comm_type"] = exchange;
  if (from.text("context_parallel_strategy") == "usp")
    from.note("context_parallel_strategy", "usp is approximated: keys and values are counted as gathered");
  if (from.on("optimizer_memory_host_offload")) plan["offload"] = "optimizer";
}

// MaxText's circular pipeline: all microbatches forward through each repeat, and back (layers/pipeline.py).
void add_pipeline(PlanYaml& from, const Mesh& mesh, std::int64_t sequences, Json& plan) {
  if (mesh.pp < 2) return;
  const auto given = [&](const char* key) { return from.set_integer(key).value_or(0); };
  const std::int64_t said = given("num_pipeline_microbatches");
  const bool delays = from.on("pipeline_delay_activation_forwarding");
  const std::int64_t parts = said > 0 ? said : times(mesh.pp, delays ? 2 : 1);
  plan["micro_batch"] = std::max<std::int64_t>(1, sequences / parts);
  const std::int64_t layers = given("pipeline_parallel_layers") > 0
                                  ? given("pipeline_parallel_layers")
                                  : from.integer("base_num_decoder_layers", 0);
  const std::int64_t each = from.integer("num_layers_per_pipeline_stage", 1, "", 1);
  std::int64_t repeats = given("num_pipeline_repeats");
  if (repeats == 0 && layers > 0) repeats = layers / times(mesh.pp, std::min(each, kMaxOfAxes));
  if (repeats > 1) plan["vpp"] = repeats;
  plan["schedule"] = repeats > 1 ? "interleaved-1f1b" : "gpipe";
  from.imported.notes.push_back(fmt::format(
      "MaxText's pipeline runs all microbatches forward, then back: {}",
      repeats > 1    ? "it is counted as interleaved 1F1B, which holds less memory"
      : repeats == 1 ? "it is counted as GPipe"
                     : "its repeats depend on the layers of the model, and one is counted: pass --vpp"));
}

void add_types(PlanYaml& from, Json& plan) {
  const std::string quantized = from.text("quantization");
  plan["precision"] =
      from.choice("dtype", {{"float32", "fp32"}, {"float16", "fp16"}, {"bfloat16", "bf16"}}, "bf16");
  if (quantized.find("fp8") != std::string::npos) {
    plan["precision"] = "fp8";
    if (quantized.find("mx") != std::string::npos) plan["fp8_scaling"] = "mx";
    if (quantized.find("current") != std::string::npos) plan["fp8_scaling"] = "current";
  } else if (!quantized.empty()) {
    from.note("quantization",
              quantized + " is ignored: GEMMs are counted in " + plan["precision"].get<std::string>(),
              kLessTime);
  }
  if (from.text("attention") == "dot_product") plan["fused_attention"] = false;
}

void add_batch_of_maxtext(PlanYaml& from, const Mesh& mesh, Json& plan) {
  plan["seq"] = from.integer("max_target_length", 2048, "/plan/seq", 1);
  const double each = from.number("per_device_batch_size", 12);
  const std::int64_t steps = from.integer("gradient_accumulation_steps", 1, "", 1);
  const auto sequences = whole_of(each * static_cast<double>(times(times(mesh.tp, mesh.pp), mesh.cp)));
  plan["micro_batch"] = std::max<std::int64_t>(1, sequences);
  if (mesh.gpus > 0)
    plan["global_batch"] = std::max<std::int64_t>(
        1, whole_of(each * static_cast<double>(mesh.gpus) * static_cast<double>(steps)));
  else
    from.imported.notes.emplace_back("the global batch follows from the number of GPUs: pass --gpus");
  add_pipeline(from, mesh, sequences, plan);
}

void add_optimizer_of_maxtext(PlanYaml& from, Json& plan) {
  plan["clip_grad"] = from.number("gradient_clipping_threshold", 1);
  const std::string optimizer = from.text("opt_type");
  if (!optimizer.empty())
    note_optimizer(from.place("opt_type"), optimizer == "adam_pax" ? "adam" : optimizer, from.imported);
}

// Keys without effect on the time and memory of a step.
const std::set<std::string>& free_of_maxtext() {
  static const std::set<std::string> keys = keys_of(
      "adam_b1 adam_b2 adam_eps adam_weight_decay add_bos add_eos async_checkpointing "
      "base_output_directory checkpoint_period cosine_learning_rate_final_fraction "
      "data_shuffle_seed dataset_name dataset_names dataset_path dataset_type enable_checkpointing "
      "enable_data_shuffling enable_goodput_recording enable_tensorboard eval_dataset_name "
      "eval_interval eval_split eval_steps gcs_metrics grain_train_files grain_worker_count "
      "hf_access_token hf_eval_files hf_path hf_train_files init_weights_seed jax_cache_dir "
      "learning_rate learning_rate_final_fraction learning_rate_schedule_steps "
      "load_full_state_path load_parameters_path log_config log_period max_segments_per_seq "
      "metrics_file monitor_goodput norm_topk_prob normalization_layer_epsilon "
      "override_model_config packing profiler profiler_steps qk_norm_with_scale "
      "reuse_example_batch rope_max_timescale rope_min_timescale rope_type rope_use_scale "
      "routed_scaling_factor run_name save_config_to_gcs skip_first_n_steps_for_profiler steps "
      "tokenizer_path tokenizer_type train_split upload_all_profiler_results "
      "use_vertex_tensorboard warmup_steps_fraction");
  return keys;
}

}  // namespace

bool is_maxtext(const Json& yaml) {
  if (!yaml.is_object()) return false;
  const auto has = [&](const char* key) { return yaml.contains(key); };
  if (has("student_overrides")) return false;  // two networks
  return has("ici_fsdp_parallelism") || has("dcn_data_parallelism") || has("base_emb_dim") ||
         (has("base_config") && (has("per_device_batch_size") || has("model_name")));
}

Imported import_maxtext(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request, Typing::lax);  // configs/types.py is pydantic
  Json plan = {{"framework", "fsdp"}};
  const Mesh mesh = mesh_of(from, request.gpus);
  from.write_gpus(mesh.gpus);
  add_mesh(from, mesh, plan);
  add_types(from, plan);
  add_remat_policy(from, from.integer("num_experts", 1) > 1, plan);
  add_batch_of_maxtext(from, mesh, plan);
  add_optimizer_of_maxtext(from, plan);
  if (const double capacity = from.number("capacity_factor", -1, -1); capacity > 0)
    plan["moe_capacity"] = capacity;
  if (const std::string hardware = from.text("hardware"); hardware != "gpu" && hardware != "gpu_multiprocess")
    from.imported.notes.push_back(
        fmt::format("hardware {} is approximated: the GPUs of the cluster are counted",
                    hardware.empty() ? "tpu, MaxText's default," : hardware));
  if (const std::string base = from.text("base_config");
      !base.empty() && base.substr(base.find_last_of('/') + 1) != "base.yml")
    from.note("base_config",
              base + " is not read: keys that this file does not name may have other values there");
  from.imported.notes.emplace_back(
      "MaxText: kernels of the profile are counted, not XLA's; keys that the file does not name have the "
      "values of MaxText's base.yml");
  from.ignore_unless(kIgnoredOfMaxtext);
  add_model(from);
  from.imported.scenario["plan"] = plan;
  return from.finish(free_of_maxtext());
}

}  // namespace rehearse
