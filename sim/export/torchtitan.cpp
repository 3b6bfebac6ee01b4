#include <fmt/core.h>

#include "export/launch_lines.h"
#include "export/unsaid.h"

namespace rehearse {

namespace {

// The name in torch.distributed.pipelining; "" where it has none.
std::string schedule_name(const Plan& plan) {
  switch (plan.schedule) {
    case ScheduleName::gpipe:
      return "GPipe";
    case ScheduleName::one_f_one_b:
      return "1F1B";
    case ScheduleName::interleaved:
      return plan.vpp > 1 ? "Interleaved1F1B" : "1F1B";
    case ScheduleName::zb_v:
      return "ZBVZeroBubble";
    case ScheduleName::dualpipe_v:
      return "DualPipeV";
    default:
      return "";
  }
}

bool compiles_model(const Plan& plan) {
  return plan.fused_rotary && plan.fused_activation;
}

std::string why_not(const Plan& plan) {
  if (plan.precision == Precision::fp16) return "torchtitan trains in bf16, fp8 or fp32, not in fp16";
  if (plan.precision == Precision::fp4) return "torchtitan trains in bf16, fp8 or fp32, not in fp4";
  if (plan.tp_comm_overlap && !compiles_model(plan))
    return "torchtitan's asynchronous tensor parallelism needs a compiled model: fused rotary positions and "
           "activations";
  if (schedule_name(plan).empty())
    return fmt::format("torchtitan has no schedule {}", to_string(plan.schedule));
  if (plan.vpp > 1 && plan.pp == 1) return "torchtitan has model chunks only with pipeline parallelism";
  if (plan.zero == 1)
    return "torchtitan shards gradients with the optimizer state: ZeRO-2 or ZeRO-3, not ZeRO-1";
  if (plan.cp > 1 && (plan.zero == 0 || plan.zero_shard % plan.cp != 0))
    return "torchtitan shards state over all context-parallel ranks";
  if (plan.tp > 1 && !plan.sequence_parallel)
    return "torchtitan's tensor parallelism always has sequence parallelism";
  if (plan.cp > 1 && plan.cp_exchange == ContextExchange::all_to_all)
    return "torchtitan's context parallelism gathers or rotates keys and values, and does not split heads";
  if (plan.recompute == Recompute::selective)
    return "torchtitan recomputes by op or by layer, not Megatron-LM's modules";
  if (plan.fused_experts) return "torchtitan runs the activation of experts in a separate kernel";
  if (plan.cuda_graph) return "torchtitan trains without CUDA graphs";
  if (plan.dispatcher_sms > 0) return "torchtitan does not set the SMs of dispatch and combine";
  if (plan.offload != Offload::none) return "torchtitan cannot offload what this plan offloads";
  return "";
}

// A list of modules for each stage.
std::string modules(const std::vector<int>& layers_per_stage) {
  std::string text = "module_fqns_per_model_part = [\n";
  int layer = 0;
  for (std::size_t s = 0; s < layers_per_stage.size(); ++s) {
    std::vector<std::string> names;
    if (s == 0) names.emplace_back("\"tok_embeddings\"");
    for (int i = 0; i < layers_per_stage[s]; ++i) names.push_back(fmt::format("\"layers.{}\"", layer++));
    if (s + 1 == layers_per_stage.size()) names.insert(names.end(), {"\"norm\"", "\"output\""});
    text += fmt::format("  [{}],\n", join(names));
  }
  return text + "]\n";
}

std::string pipeline(const Model& model, const Plan& plan) {
  std::string text = fmt::format("pipeline_parallel_degree = {}\n", plan.pp);
  if (plan.pp == 1) return text;
  text += fmt::format("pipeline_parallel_schedule = \"{}\"\n", schedule_name(plan));
  text += fmt::format("pipeline_parallel_microbatch_size = {}\n", plan.micro_batch);
  if (!plan.layers_per_stage.empty()) return text + modules(plan.layers_per_stage);
  text += fmt::format("pipeline_parallel_layers_per_stage = {}\n", model.layers / plan.stages());
  // The embedding and the head do not count as layers.
  text += "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 0\n";
  return text;
}

// Data-parallel ranks that shard the state; context-parallel ranks shard it too.
int shard_degree(const Plan& plan) {
  return plan.zero == 0 ? 1 : plan.zero_shard > 0 ? plan.zero_shard / plan.cp : plan.dp;
}

std::string data_parallel(const Plan& plan) {
  const int shard = shard_degree(plan);
  std::string text = fmt::format("data_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n",
                                 plan.dp / shard, shard);
  if (plan.zero == 0) return text;
  const bool reshards = plan.zero == 3 && plan.reshard_after_forward;
  return text + fmt::format("fsdp_reshard_after_forward = \"{}\"\n", reshards ? "always" : "never");
}

std::string checkpointing(Recompute recompute) {
  const bool by_op = recompute == Recompute::op;
  return fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n{}",
                     by_op ? "selective" : to_string(recompute),
                     by_op ? "selective_ac_option = \"op\"\n" : "");
}

// The output layer stays in bf16.
std::string quantizing(const Plan& plan) {
  if (plan.precision != Precision::fp8) return "";
  if (plan.fp8_scaling == Fp8Scaling::mx)
    return "\n[model]\nconverters = [\"quantize.linear.mx\"]\n\n[quantize.linear.mx]\nfilter_fqns = "
           "[\"output\"]\n";
  std::string text =
      "\n[model]\nconverters = [\"quantize.linear.float8\"]\n\n"
      "[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n";
  if (plan.fp8_scaling == Fp8Scaling::row) text += "recipe_name = \"rowwise\"\n";
  if (plan.fp8_scaling == Fp8Scaling::tensor_gathered)
    text += "enable_fsdp_float8_all_gather = true\nprecompute_float8_dynamic_scale_for_fsdp = true\n";
  return text;
}

std::string compiling(const Plan& plan) {
  const bool model = compiles_model(plan), loss = plan.fused_cross_entropy;
  const std::string enable = fmt::format("\n[compile]\nenable = {}\n", model || loss);
  if (model == loss) return enable;
  return enable + fmt::format("components = [\"{}\"]\n", model ? "model" : "loss");
}

// fully_shard sets the precision of sharded parameters. Without it torch.autocast does. With tensor or
// pipeline parallelism and no sharding, nothing does: torchtitan then trains in fp32
// (torchtitan/distributed/utils.py, maybe_enable_amp).
Plan with_its_precision(Plan plan) {
  const bool narrow = plan.precision == Precision::bf16 && plan.recipe != Recipe::bf16;
  if (narrow && shard_degree(plan) * plan.cp == 1 && (plan.tp > 1 || plan.pp > 1))
    plan.precision = Precision::fp32;
  return plan;
}

Plan said_of(const Model& model, const Plan& plan) {
  const Plan told = with_its_precision(plan);
  Plan said = untold(model, told, Framework::torchtitan);
  const int shard = shard_degree(plan), replicas = plan.dp / shard;
  if (told.precision == Precision::bf16 && shard * plan.cp == 1) said.recipe = Recipe::autocast;
  said.zero = shard * plan.cp > 1 ? 3 : 0;  // ZeRO-3 in place of ZeRO-2 that keeps gathered parameters
  said.zero_shard = said.zero > 0 && replicas > 1 ? shard * plan.cp : 0;
  if (plan.pp == 1 && plan.schedule == ScheduleName::gpipe) said.schedule = ScheduleName::one_f_one_b;
  said.seq = plan.seq;
  said.layers_per_stage = plan.layers_per_stage;
  if (plan.fp8_scaling != Fp8Scaling::current) said.fp8_scaling = plan.fp8_scaling;
  said.recompute = plan.recompute;
  said.tp_comm_overlap = plan.tp_comm_overlap;
  said.cp_exchange = plan.cp_exchange;
  said.dispatcher = plan.dispatcher;
  said.etp = plan.etp;
  said.fused_cross_entropy = plan.fused_cross_entropy;
  said.fused_rotary = said.fused_activation = compiles_model(plan);
  said.reshard_after_forward = plan.reshard_after_forward;
  if (plan.recipe == Recipe::bf16) said.recipe = plan.recipe;
  if (plan.grad_reduce == Precision::bf16) said.grad_reduce = plan.grad_reduce;
  return said;
}

}  // namespace

LaunchLine torchtitan_toml(const Model& model, const Plan& plan) {
  const std::string reason = why_not(plan);
  if (!reason.empty()) return {"", reason, {}};
  const std::int64_t local = plan.pp > 1 ? plan.micro_batch * plan.microbatches() : plan.micro_batch;
  std::string text =
      fmt::format("[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\nmax_norm = {}\n",
                  local, plan.global_batch, plan.seq, plan.clip_grad);
  if (plan.precision == Precision::fp32) text += "mixed_precision_param = \"float32\"\n";
  if (plan.grad_reduce == Precision::bf16) text += "mixed_precision_reduce = \"bfloat16\"\n";
  if (plan.recipe == Recipe::bf16) text += "dtype = \"bfloat16\"\n";
  text += "\n[parallelism]\n" + data_parallel(plan);
  text += fmt::format("tensor_parallel_degree = {}\n", plan.tp) + pipeline(model, plan);
  if (plan.tp_comm_overlap) text += "enable_async_tensor_parallel = true\n";
  if (plan.cp > 1) {
    text += fmt::format("context_parallel_degree = {}\ncontext_parallel_rotate_method = \"{}\"\n", plan.cp,
                        // Its all-to-all sends keys and values to the next rank: a ring.
                        plan.cp_exchange == ContextExchange::gather ? "allgather" : "alltoall");
  }
  if (model.experts)
    text +=
        fmt::format("expert_parallel_degree = {}\nexpert_tensor_parallel_degree = {}\n", plan.ep, plan.etp);
  if (plan.sends_rows_once())
    text += fmt::format("expert_parallel_comm_backend = \"{}\"\n", to_string(plan.dispatcher));
  text += checkpointing(plan.recompute) + quantizing(plan) + compiling(plan);
  return {std::move(text), "", unsaid(model, plan, said_of(model, plan))};
}

}  // namespace rehearse
