#include "cases.h"

#include <algorithm>

namespace rehearse::test {

Model small_model(int layers) {
  Model model;
  model.name = "small";
  model.layers = layers;
  model.hidden = 256;
  model.heads = model.kv_heads = 4;
  model.head_dim = 64;
  model.ffn_hidden = 1024;
  model.vocab = 1000;
  model.max_positions = 128;
  return model;
}

Plan small_plan(int pp, int vpp, int microbatches, int dp) {
  Plan plan;
  plan.pp = pp;
  plan.vpp = vpp;
  plan.dp = dp;
  plan.seq = 128;
  plan.global_batch = static_cast<std::int64_t>(microbatches) * dp;
  plan.schedule = vpp > 1 ? ScheduleName::interleaved : ScheduleName::one_f_one_b;
  return plan;
}

Timeline walk(const Schedule& schedule, const Plan& plan, const Seconds& seconds,
              const TaskOptions& options) {
  const Tasks tasks = derive_tasks(schedule, plan, options);
  std::vector<Span> spans(tasks.size());
  for (const TaskId task : topological_order(tasks)) {
    const OpRef leader = tasks.leader[task];
    const Instance& instance = tasks.instances[static_cast<std::size_t>(leader.instance)];
    const RankOps& list = schedule.ranks[static_cast<std::size_t>(instance.pipeline_rank)];
    spans[task].end = spans[task].begin + seconds(list[static_cast<std::size_t>(leader.op)]);
    for (const TaskId next : tasks.after(task))
      spans[next].begin = std::max(spans[next].begin, spans[task].end);
  }
  Timeline timeline;
  for (int i = 0; i < static_cast<int>(tasks.instances.size()); ++i) {
    TimelineRank rank{tasks.instances[static_cast<std::size_t>(i)], {}};
    const std::size_t ops = schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)].size();
    for (std::size_t op = 0; op < ops; ++op) rank.spans.push_back(spans[tasks.task(i, op)]);
    timeline.ranks.push_back(std::move(rank));
  }
  return timeline;
}

Schedule full_schedule(const Plan& plan, int buckets, bool tied) {
  GradientSync sync;
  sync.overlap = plan.overlap_grad_reduce;
  sync.tied = tied;
  sync.replicas = plan.dp;
  sync.buckets.assign(static_cast<std::size_t>(plan.stages()), buckets);
  return complete_schedule(plan, sync);
}

RunFacts small_facts(const Plan& plan) {
  RunFacts facts;
  facts.profile_name = "test profile";
  facts.profile_how = "published";
  facts.cluster_name = "test cluster";
  facts.gpu_name = "test GPU";
  facts.gpus = plan.gpus();
  facts.gpu_memory_bytes = 80e9;
  facts.peak_flops = 312e12;
  return facts;
}

OpTimes small_times(const Plan& plan) {
  TimeParts part, step;
  part.compute = 3;
  part.tp = 1;
  step.optimizer = 1;
  OpTimes times;
  times.stages.assign(static_cast<std::size_t>(plan.stages()), {part, part, part});
  times.step.assign(static_cast<std::size_t>(plan.pp), step);
  return times;
}

Case make_case(const Plan& plan, const Durations& durations, bool tied, const Model& model,
               const TaskOptions& options) {
  Case made{model, plan, make_work(model, plan), full_schedule(plan, 2, tied), {}, {}};
  made.timeline = walk(made.schedule, plan, durations, options);
  made.report = make_report(made.timeline, made.schedule, derive_tasks(made.schedule, plan, options), model,
                            plan, made.work, small_times(plan), small_facts(plan));
  return made;
}

}  // namespace rehearse::test
