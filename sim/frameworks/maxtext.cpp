#include <fmt/core.h>

#include <array>

#include "frameworks/optimizer_note.h"
#include "frameworks/other_yaml.h"
#include "frameworks/plan_yaml.h"

namespace rehearse {

namespace {

// Both meshes of an axis, within a slice and across slices; 0 where one of them is what the others leave
// (-1).
std::int64_t axis(PlanYaml& from, const std::string& name, bool takes_rest = false) {
  std::int64_t size = 1;
  for (const char* mesh : {"ici_", "dcn_"}) {
    const std::string key = mesh + name + "_parallelism";
    const Json* value = from.find(key);
    const bool is_default_rest = value == nullptr && takes_rest && std::string(mesh) == "ici_";
    if (is_default_rest || (value != nullptr && *value == -1))
      size = 0;
    else
      size *= from.integer(key, 1);
  }
  return size;
}

// One function for each input projection: two make a gated MLP.
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

// src/maxtext/configs/base.yml, whose values a file without its own has.
Json model_of_maxtext(PlanYaml& from) {
  const std::int64_t heads = from.integer("base_num_query_heads", 16);
  Json config = {{"model_type", "megatron_gpt"},
                 {"num_hidden_layers", from.integer("base_num_decoder_layers", 16)},
                 {"hidden_size", from.integer("base_emb_dim", 2048)},
                 {"intermediate_size", from.integer("base_mlp_dim", 7168)},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", from.integer("base_num_kv_heads", heads)},
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
  if (const std::int64_t experts = from.integer("num_experts", 1); experts > 1) {
    config["num_experts"] = experts;
    config["num_experts_per_tok"] = from.integer("num_experts_per_tok", 1);
    config["moe_intermediate_size"] = from.integer("base_moe_mlp_dim", from.integer("base_mlp_dim", 7168));
  }
  return config;
}

void add_model(PlanYaml& from) {
  constexpr std::array kBlocks = {"", "llama2", "mistral", "mixtral", "default", "qwen3"};
  const std::string block = from.text("decoder_block"), name = from.text("model_name");
  const bool is_named = !name.empty() && name != "default";
  const bool is_llama = std::ranges::find(kBlocks, block) != kBlocks.end();
  if (is_named || !is_llama)
    return from.note(
        is_named ? "model_name" : "decoder_block",
        fmt::format("{} is not looked up: pass --model NAME|config.json", is_named ? name : block));
  from.imported.model = model_of_maxtext(from);
}

}  // namespace

bool is_maxtext(const Json& yaml) {
  if (!yaml.is_object()) return false;
  const auto has = [&](const char* key) { return yaml.contains(key); };
  return has("ici_fsdp_parallelism") || has("dcn_data_parallelism") || has("base_emb_dim") ||
         (has("base_config") && (has("per_device_batch_size") || has("model_name")));
}

Imported import_maxtext(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request);
  Json plan = {{"framework", "fsdp"}};
  const std::int64_t tp = axis(from, "tensor") * axis(from, "tensor_sequence");
  const std::int64_t pp = axis(from, "pipeline"), cp = axis(from, "context"), ep = axis(from, "expert");
  const std::int64_t shard = axis(from, "fsdp", true) * axis(from, "fsdp_transpose"),
                     copies = axis(from, "data");
  const std::int64_t all = tp * pp * cp * ep * shard * copies;
  from.write_gpus(all);
  const std::int64_t gpus = request.gpus > 0 ? request.gpus : all;
  for (const auto& [key, degree] : {std::pair{"tp", tp}, {"pp", pp}, {"cp", cp}, {"ep", ep}})
    if (degree > 1) plan[key] = degree;
  plan["zero"] = shard == 1 ? 0 : 3;
  if (copies > 1 && shard > 1) plan["zero_shard"] = shard;
  if (pp > 1) plan["schedule"] = "1f1b";
  const std::string type = from.text("dtype"), quantized = from.text("quantization");
  plan["precision"] = type == "float32" ? "fp32" : type == "float16" ? "fp16" : "bf16";
  if (quantized.find("fp8") != std::string::npos)
    plan["precision"] = "fp8";
  else if (!quantized.empty())
    from.note("quantization",
              quantized + " is ignored: GEMMs are counted in " + plan["precision"].get<std::string>());
  if (from.text("attention") == "dot_product") plan["fused_attention"] = false;
  from.ignore_unless("weight_dtype", "float32", "parameters and optimizer state are counted in fp32");
  from.ignore_unless("logits_dot_in_fp32", false,
                     "the logits are counted in the precision of the other GEMMs");
  const std::string remat = from.text("remat_policy");
  plan["recompute"] = remat.empty() || remat == "full" ? "full" : "none";
  if (!remat.empty() && remat != "full")
    from.note("remat_policy", remat + " is approximated: nothing is recomputed, which takes more memory");
  plan["seq"] = from.integer("max_target_length", 2048);
  const double each = from.number("per_device_batch_size", 12);
  const std::int64_t steps = std::max<std::int64_t>(1, from.integer("gradient_accumulation_steps", 1));
  const std::int64_t share = std::max<std::int64_t>(1, tp * pp * cp);
  plan["micro_batch"] =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(each * static_cast<double>(share)));
  if (gpus > 0)
    plan["global_batch"] =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(each * static_cast<double>(gpus)) * steps);
  else
    from.imported.notes.emplace_back("the global batch follows from the number of GPUs: pass --gpus");
  plan["clip_grad"] = from.number("gradient_clipping_threshold", 1);
  const std::string optimizer = from.text("opt_type");
  const std::string differs =
      optimizer.empty()
          ? ""
          : optimizer_note(from.place("opt_type"), optimizer == "adam_pax" ? "adam" : optimizer);
  if (!differs.empty()) from.imported.notes.push_back(differs);
  if (const std::string hardware = from.text("hardware"); hardware == "tpu")
    from.note("hardware", "tpu is approximated: the GPUs of the cluster are counted");
  from.imported.notes.emplace_back(
      "MaxText: kernels of the profile are counted, not XLA's; keys that the file does not name have the "
      "values "
      "of MaxText's base.yml");
  add_model(from);
  from.imported.scenario["plan"] = plan;
  return from.finish({"base_config",
                      "base_output_directory",
                      "run_name",
                      "steps",
                      "scan_layers",
                      "use_iota_embed",
                      "dataset_type",
                      "dataset_path",
                      "dataset_name",
                      "reuse_example_batch",
                      "enable_checkpointing",
                      "async_checkpointing",
                      "checkpoint_period",
                      "max_segments_per_seq",
                      "tokenizer_path",
                      "tokenizer_type",
                      "learning_rate",
                      "enable_goodput_recording",
                      "monitor_goodput",
                      "profiler",
                      "log_period",
                      "hf_path",
                      "eval_interval",
                      "eval_steps",
                      "rope_max_timescale",
                      "normalization_layer_epsilon",
                      "override_model_config",
                      "packing"});
}

}  // namespace rehearse
