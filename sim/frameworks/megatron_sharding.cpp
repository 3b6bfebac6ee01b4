#include "frameworks/megatron_sharding.h"

#include <fmt/core.h>

#include <algorithm>

#include "frameworks/megatron_options.h"

namespace rehearse {

namespace {

constexpr const char* kStrategy = "--data-parallel-sharding-strategy";
constexpr const char* kInstances = "--num-distributed-optimizer-instances";

// The strategies stand in the order of ZeRO's stages. The default is no_shard up to core_v0.16, and
// optim_grads_params since then. Only the older releases have --use-custom-fsdp. Source:
// megatron/training/arguments.py of c550cf6c41, 3bec9aa97d and d98e8a64dd.
std::int64_t stage_of_megatron_fsdp(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const auto& strategies = find_megatron_option(kStrategy)->choices;
  const bool is_old = flags.has("--use-custom-fsdp");
  if (!flags.has(kStrategy))
    notes.push_back(is_old ? fmt::format("{} is not given: no_shard is counted, the default of releases that "
                                         "have --use-custom-fsdp",
                                         kStrategy)
                           : fmt::format("{} is not given: optim_grads_params is counted, the default since "
                                         "April 2026; up to core_v0.16 it is no_shard",
                                         kStrategy));
  const std::string named = flags.text_or(kStrategy, is_old ? "no_shard" : "optim_grads_params");
  return std::ranges::find(strategies, named) - strategies.begin();
}

// Copies of the sharded optimizer state; each is divided among an equal part of the replicas.
void add_instances(const MegatronFlags& flags, const Json& scenario, Json& plan,
                   std::vector<std::string>& notes) {
  const std::int64_t copies = flags.integer_or(kInstances, 1);
  if (copies <= 1 || plan.value("zero", 0) == 0) return;
  const std::int64_t experts = flags.integer_or("--expert-model-parallel-size", 1);
  if (!scenario.contains("gpus") || experts > 1) {
    notes.push_back(fmt::format(
        "{} is ignored {}", kInstances,
        experts > 1 ? "with expert parallelism" : "without the number of GPUs: pass --zero-shard"));
    return;
  }
  const auto degree = [&](const char* flag) { return std::max<std::int64_t>(1, flags.integer_or(flag, 1)); };
  const std::int64_t gpus = scenario["gpus"], ranks = degree("--tensor-model-parallel-size") *
                                                      degree("--pipeline-model-parallel-size");
  if (gpus % ranks != 0) return;  // which a rule of the plan names
  const std::int64_t replicas = gpus / ranks;
  constexpr std::int64_t kReach = 100000;
  std::int64_t fewer = std::min(copies, kReach);
  while (replicas % fewer != 0) --fewer;
  if (replicas % copies != 0)
    flags.fail(kInstances, fmt::format("must divide the {} replicas", replicas), std::to_string(fewer));
  plan["zero_shard"] = replicas / copies;
}

}  // namespace

void add_sharding(const MegatronFlags& flags, const Json& scenario, Json& plan,
                  std::vector<std::string>& notes) {
  if (flags.has("--use-distributed-optimizer")) plan["zero"] = 1;
  const bool fsdp = flags.has("--use-megatron-fsdp") || flags.has("--use-custom-fsdp");
  if (fsdp)
    plan["zero"] = stage_of_megatron_fsdp(flags, notes);
  else if (flags.has("--use-torch-fsdp2"))
    plan["zero"] = flags.has("--torch-fsdp2-no-reshard-after-forward") ? 2 : 3;
  if (plan.value("zero", 0) == 3) {
    // Megatron-FSDP turns both overlaps on where it shards parameters
    // (core/distributed/fsdp/src/megatron_fsdp/ megatron_fsdp.py). Its forerunner gathers each layer's
    // parameters ahead where it is told to.
    if (flags.has("--use-custom-fsdp") && !flags.has("--overlap-param-gather")) plan["prefetch"] = 0;
    if (!flags.has("--use-custom-fsdp")) plan["overlap_grad_reduce"] = true;
    plan["overlap_param_gather"] = false;
  }
  // PyTorch's FSDP2 reduces gradients behind the backward pass of each layer.
  if (!fsdp && flags.has("--use-torch-fsdp2")) plan["overlap_grad_reduce"] = true;
  if (flags.has("--optimizer-cpu-offload")) plan["offload"] = "optimizer";
  add_instances(flags, scenario, plan, notes);
}

}  // namespace rehearse
