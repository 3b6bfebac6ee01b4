#include <fmt/core.h>

#include "export/launch_lines.h"
#include "export/unsaid.h"
#include "plan/sharding.h"

namespace rehearse {

namespace {

std::string why_not(const Plan& plan) {
  if (plan.schedule != ScheduleName::one_f_one_b || plan.vpp > 1)
    return fmt::format("DeepSpeed's pipeline engine runs 1f1b only, not {}", to_string(plan.schedule));
  if (plan.pp > 1 && plan.zero >= 2)
    return "DeepSpeed cannot combine ZeRO-2 or ZeRO-3 with pipeline parallelism";
  if (plan.pp > 1 && plan.tp > 1) return "ds_config.json has no tensor parallelism with its pipeline engine";
  if (plan.cp > 1) return "ds_config.json has no context parallelism";
  if (plan.ep > 1) return "ds_config.json has no expert parallelism";
  if (plan.cuda_graph) return "ds_config.json has no CUDA graphs of training";
  if (!plan.layers_per_stage.empty()) return "ds_config.json lists no layers per stage";
  if (plan.zero_shard > 0 && plan.zero < 3)
    return "DeepSpeed shards state over fewer than all replicas only with ZeRO-3 (mics_shard_size)";
  return "";
}

std::int64_t reduced_elements(const Plan& plan) {
  return static_cast<std::int64_t>(plan.bucket_bytes / gradient_wire_bytes(plan));
}

Json zero_optimization(const Plan& plan) {
  Json zero = {{"stage", plan.zero},
               {"overlap_comm", plan.overlap_grad_reduce},
               {"contiguous_gradients", true},
               {"reduce_bucket_size", reduced_elements(plan)}};
  if (plan.zero == 3 && plan.zero_shard > 0) zero["mics_shard_size"] = plan.zero_shard;
  if (plan.offload == Offload::optimizer) zero["offload_optimizer"] = {{"device", "cpu"}};
  return zero;
}

// The training script chooses the model, the recompute method and the kernels.
Plan said_of(const Model& model, const Plan& plan) {
  Plan said = untold(model, plan, Framework::deepspeed);
  if (is_quantized(plan.precision)) said.precision = Precision::bf16;
  said.overlap_grad_reduce = plan.overlap_grad_reduce;
  said.bucket_bytes = static_cast<double>(reduced_elements(plan)) * gradient_wire_bytes(plan);
  said.grad_reduce = plan.grad_reduce;
  if (plan.offload == Offload::optimizer) said.offload = plan.offload;
  return said;
}

}  // namespace

LaunchLine deepspeed_config(const Model& model, const Plan& plan) {
  const std::string reason = why_not(plan);
  if (!reason.empty()) return {"", reason, {}};
  Json config = {{"train_batch_size", plan.global_batch},
                 {"train_micro_batch_size_per_gpu", plan.micro_batch},
                 {"gradient_accumulation_steps", plan.microbatches()}};
  if (plan.precision == Precision::fp16) config["fp16"] = {{"enabled", true}};
  if (plan.precision == Precision::bf16 || is_quantized(plan.precision)) config["bf16"] = {{"enabled", true}};
  if (plan.precision != Precision::fp32 || plan.grad_reduce != Precision::fp32)
    config["communication_data_type"] = to_string(plan.grad_reduce);
  if (plan.clip_grad > 0) config["gradient_clipping"] = plan.clip_grad;
  config["zero_optimization"] = zero_optimization(plan);
  if (plan.pp > 1) config["pipeline"] = {{"stages", plan.pp}};
  if (plan.tp > 1) config["tensor_parallel"] = {{"autotp_size", plan.tp}};
  return {config.dump(2), "", unsaid(model, plan, said_of(model, plan))};
}

}  // namespace rehearse
