#include "frameworks/megatron_sharding.h"

#include <fmt/core.h>

#include <algorithm>

namespace rehearse {

namespace {

// Copies of the sharded optimizer state; each is divided among an equal part of the replicas.
void add_instances(const MegatronFlags& flags, const Json& scenario, Json& plan,
                   std::vector<std::string>& notes) {
  constexpr const char* kName = "--num-distributed-optimizer-instances";
  const std::int64_t copies = flags.integer_or(kName, 1);
  if (copies <= 1 || plan.value("zero", 0) == 0) return;
  const std::int64_t experts = flags.integer_or("--expert-model-parallel-size", 1);
  if (!scenario.contains("gpus") || experts > 1) {
    notes.push_back(fmt::format(
        "{} is ignored {}", kName,
        experts > 1 ? "with expert parallelism" : "without the number of GPUs: pass --zero-shard"));
    return;
  }
  const std::int64_t gpus = scenario["gpus"],
                     ranks = std::max<std::int64_t>(1, flags.integer_or("--tensor-model-parallel-size", 1)) *
                             std::max<std::int64_t>(1, flags.integer_or("--pipeline-model-parallel-size", 1));
  if (gpus % ranks != 0) return;  // which a rule of the plan names
  const std::int64_t replicas = gpus / ranks;
  constexpr std::int64_t kReach = 100000;
  std::int64_t fewer = std::min(copies, kReach);
  while (replicas % fewer != 0) --fewer;
  if (replicas % copies != 0)
    flags.fail(kName, fmt::format("must divide the {} replicas", replicas), std::to_string(fewer));
  plan["zero_shard"] = replicas / copies;
}

}  // namespace

void add_sharding(const MegatronFlags& flags, const Json& scenario, Json& plan,
                  std::vector<std::string>& notes) {
  if (flags.has("--use-distributed-optimizer")) plan["zero"] = 1;
  const bool fsdp = flags.has("--use-megatron-fsdp") || flags.has("--use-custom-fsdp");
  if (fsdp || flags.has("--use-torch-fsdp2"))
    plan["zero"] = !fsdp && flags.has("--torch-fsdp2-no-reshard-after-forward") ? 2 : 3;
  if (fsdp && flags.has("--data-parallel-sharding-strategy")) {  // which the others do not read
    const auto& strategies = find_megatron_option("--data-parallel-sharding-strategy")->choices;
    const std::string named = flags.text("--data-parallel-sharding-strategy");
    plan["zero"] = std::ranges::find(strategies, named) - strategies.begin();
  }
  // Megatron-FSDP gathers each layer's parameters ahead where it is told to, and else as they are needed.
  if (plan.value("zero", 0) == 3) {
    if (fsdp && !flags.has("--overlap-param-gather")) plan["prefetch"] = 0;
    plan["overlap_param_gather"] = false;
  }
  if (flags.has("--optimizer-cpu-offload")) plan["offload"] = "optimizer";
  add_instances(flags, scenario, plan, notes);
}

}  // namespace rehearse
