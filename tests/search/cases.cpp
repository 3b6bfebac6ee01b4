#include "cases.h"

#include <array>
#include <random>

#include "model/read.h"
#include "plan/frameworks/traits.h"
#include "plan/schedules.h"

namespace rehearse {

namespace {

constexpr int kGpus = 8;

Model small_model(std::mt19937& random) {
  Model model = read_model(random() % 4 == 0 ? "gpt2" : "llama3-8b");
  model.layers = random() % 2 == 0 ? 8 : 4;
  model.heads = 16;
  model.kv_heads = model.positions == Positions::learned ? 16 : 8;
  model.head_dim = random() % 2 == 0 ? 64 : 128;
  model.hidden = model.heads * model.head_dim;
  model.ffn_hidden = 4 * model.hidden;
  model.vocab = 32000;
  return model;
}

void add_schedules(const Plan& base, const Model& model, std::vector<Plan>& plans) {
  for (const ScheduleName schedule : kScheduleNames) {
    if (base.pp == 1 && schedule != ScheduleName::one_f_one_b) continue;
    for (const int vpp : {1, 2, 4}) {
      Plan plan = base;
      plan.schedule = schedule;
      plan.vpp = vpp;
      plan.overlap_p2p = traits(schedule).overlaps_p2p;
      if (broken_rules(plan, model, kGpus).empty()) plans.push_back(plan);
    }
  }
}

void add_states(const Plan& base, const Model& model, std::vector<Plan>& plans) {
  for (const int zero : {0, 1, 2, 3}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      Plan plan = base;
      plan.zero = zero;
      plan.recompute = recompute;
      apply_framework(plan);
      add_schedules(plan, model, plans);
    }
  }
}

}  // namespace

SearchCase search_case(std::uint32_t seed) {
  std::mt19937 random(seed);
  SearchCase result;
  Experiment& experiment = result.experiment;
  experiment.model = small_model(random);
  experiment.cluster = read_cluster("dgx-a100-80gb");
  experiment.cluster.node.gpus = random() % 2 == 0 ? 4 : 8;
  experiment.profile = read_profile(experiment.cluster.profile);
  const double most_gb[] = {4, 6, 9};  // the context and NCCL's buffers take 2 to 3 of them
  experiment.cluster.gpu.memory_bytes = most_gb[random() % 3] * 1e9;
  Plan plan;
  plan.seq = 1024;
  plan.global_batch = 16 + 16 * static_cast<std::int64_t>(random() % 2);
  constexpr std::array kTriedFrameworks = {Framework::megatron_core, Framework::megatron_2021, Framework::fsdp,
                                      Framework::deepspeed_2021};
  plan.framework = kTriedFrameworks[random() % kTriedFrameworks.size()];
  for (plan.tp = 1; plan.tp <= kGpus; plan.tp *= 2) {
    for (plan.cp = 1; plan.tp * plan.cp <= kGpus && plan.cp <= 2; plan.cp *= 2) {
      for (plan.pp = 1; plan.tp * plan.cp * plan.pp <= kGpus; plan.pp *= 2) {
        plan.dp = kGpus / (plan.tp * plan.cp * plan.pp);
        for (plan.micro_batch = 1; plan.micro_batch <= 4; plan.micro_batch *= 2)
          add_states(plan, experiment.model, result.plans);
      }
    }
  }
  return result;
}

}  // namespace rehearse
