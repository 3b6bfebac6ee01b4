#include "run/iteration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cost/concurrent_ranks.h"
#include "cost/nccl/model.h"
#include "cost/timed_on.h"
#include "memory/lifetimes.h"
#include "memory/memory.h"
#include "memory/reserved.h"
#include "memory/sizing.h"
#include "plan/sharding.h"
#include "run/band.h"
#include "run/gpu_sharing.h"
#include "run/jitter.h"
#include "run/least_time.h"
#include "run/long_step.h"
#include "run/message_times.h"
#include "run/misaligned.h"
#include "run/order_bubble.h"
#include "run/outside_allocator.h"
#include "run/reference.h"
#include "run/simulate.h"
#include "run/size.h"
#include "run/slowdown.h"
#include "run/step_time.h"
#include "run/symmetry.h"
#include "schedule/passes.h"

namespace rehearse {

namespace {

GradientSync gradient_sync(const MessageSizes& sizes, const Model& model, const Plan& plan) {
  const int replicas = std::max(plan.dp * plan.cp, model.experts ? plan.edp() : 1);
  GradientSync sync{plan.overlap_grad_reduce, model.shares_embedding(), replicas, sizes.buckets};
  sync.each_microbatch = reduces_each_microbatch(plan);
  sync.across = shard_replicas(plan) > 1;
  sync.to_host = plan.offload == Offload::optimizer;
  // The GPU starts blocks of kernels in the order in which these reach the head of their streams (Amert et
  // al. 2017, section 4). So flattening, dividing and reducing wait for one another behind the kernels of the
  // backward pass. DeepSpeed's next gather waits for all of them.
  sync.alone = exchanges_lists(plan);
  sync.gathers_ahead = sizes.weights.empty() || std::ranges::any_of(sizes.weights, [](const auto& units) {
                         return std::ranges::any_of(units, &Weights::gathered_ahead);
                       });
  return sync;
}

double peak_flops_of(const Cluster& cluster, const Plan& plan) {
  const auto peak = cluster.gpu.peak_flops.find(to_string(plan.precision));
  return peak == cluster.gpu.peak_flops.end() ? 0 : peak->second;
}

void add_once(const std::string& text, std::vector<std::string>& texts) {
  if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

void add_word(const std::string& word, std::string& list) {
  if (list.find(word) == std::string::npos) list += (list.empty() ? "" : ", ") + word;
}

void note_collectives(const nccl::Model& model, const Cluster& cluster, RunFacts& facts) {
  const bool across = facts.gpus > cluster.node.gpus;
  const std::string basis = nccl::measured_on(model, cluster, across);
  add_word(basis, facts.collectives);
  if (nccl::basis_of(model, cluster, across) == nccl::Basis::measured) return;
  facts.warnings.push_back(fmt::format(
      "collectives of cluster {} were not measured on it ({}): times follow NCCL's model, with at least "
      "the error bar of systems that its fit has not seen, and the latency of GPU links and of NICs below "
      "{:.1f} us changes no collective; to measure: "
      "rehearse calibrate import LOG --cluster {}",
      cluster.name, basis, 1e6 * nccl::kInfinibandLatency, cluster.name));
}

void add_nodes(const Cluster& cluster, const Profile& profile, RunFacts& facts) {
  add_word(profile.name, facts.profile_name);
  add_word(to_string(profile.how), facts.profile_how);
  add_word(cluster.gpu.name, facts.gpu_name);
  facts.workspace_bytes =
      std::max(facts.workspace_bytes, gemm_workspace_bytes(cluster.gpu.peak_flops.contains("fp8")));
  add_word(profile.gpu.name, facts.profile_gpu);
  if (profile.collectives && facts.gpus > 1) note_collectives(*profile.collectives, cluster, facts);
  const std::vector<Difference> differ = differences(profile, cluster.gpu);
  for (const Difference& difference : differ) add_once(to_string(difference), facts.carried_over);
  if (differ.empty() && profile.gpu.name != cluster.gpu.name)
    facts.warnings.push_back(fmt::format("profile {} is for {}, the cluster has {}", profile.name,
                                         profile.gpu.name, cluster.gpu.name));
  if (profile.gpu.multiprocessors == 0 && cluster.gpu.multiprocessors > 0)
    facts.warnings.push_back(fmt::format(
        "profile {} does not state /gpu/multiprocessors of {}: the {} of the cluster's GPU are used",
        profile.name, profile.gpu.name, cluster.gpu.multiprocessors));
}

void note_launches(const Plan& plan, const Prices& prices, RunFacts& facts) {
  constexpr double kNegligibleShare = 0.01;
  facts.launch_bound_share = prices.launch_bound_s / std::max(1e-12, prices.priced_s + prices.launch_bound_s);
  if (facts.launch_bound_share < kNegligibleShare) return;
  const char* const instead =
      plan.launch_blocking ? "--launch-blocking off hides it" : "--cuda-graph on removes it";
  facts.warnings.push_back(
      fmt::format("{:.0f} % of the kernel time is CPU launch overhead (the GPU waits for the host); {}",
                  100 * facts.launch_bound_share, instead));
}

void warn_of_pairs(const Plan& plan, const Schedule& schedule, RunFacts& facts) {
  const auto has_pairs = [](const RankOps& ops) {
    return std::ranges::any_of(ops.ops(), [](const Op& op) { return op.beside >= 0; });
  };
  if (plan.overlap_experts && std::ranges::none_of(schedule.ranks, has_pairs))
    facts.warnings.push_back(plan.ep > 1 ? "no forward is next to an unsplit backward of another microbatch: "
                                           "dispatch and combine are not overlapped"
                                         : "ep = 1: there is no dispatch or combine to overlap");
}

// Each rank has the sums of squares of its own heads. transformers instead gathers all heads (OLMo 2's plan
// of tensor parallelism: "we need to replicate here due to the added norm on q and k").
void warn_of_wide_norms(const Model& model, const Plan& plan, RunFacts& facts) {
  if (plan.tp == 1 || !model.qk_norm || model.qk_norm_span != QkNormSpan::all_heads) return;
  facts.warnings.push_back(fmt::format(
      "model {} normalises queries and keys over all heads: at tp {} each layer all-reduces their "
      "sums of squares, which is not costed (too fast); tp 1 has no such all-reduce",
      model.name, plan.tp));
}

// Mechanisms whose kernels were never timed: the error bar counts them (band.h).
void warn_of_untimed(const Model& model, const Plan& plan, RunFacts& facts) {
  constexpr double kNegligibleShare = 0.005;
  const char* what = model.recurrence    ? "the recurrence in attention's place"
                     : model.compressed  ? "attention over compressed keys"
                     : model.caps_scores ? "attention with capped scores"
                                         : "the indexer of sparse attention";
  if (facts.unmeasured_share > kNegligibleShare)
    facts.warnings.push_back(fmt::format(
        "model {}: {:.0f} % of the kernel time is of {}, whose kernels nobody timed: they are costed "
        "by their FLOPs and bytes, and the error bar is widened by half of their time",
        model.name, 100 * facts.unmeasured_share, what));
  if (model.window_in_chunks && plan.cp > 1 && plan.seq > model.window)
    facts.warnings.push_back(
        fmt::format("model {}: attention within chunks of {} tokens is costed as attention over the whole "
                    "sequence at cp {} (too slow); cp 1 has it exactly",
                    model.name, model.window, plan.cp));
}

// A fold that may change the result is used only where simulating every rank would take long. Each op of each
// rank costs a few microseconds.
constexpr double kAffordableOps = 200'000;

std::size_t ops_of_every_rank(const Schedule& schedule, const Plan& plan) {
  std::size_t ops = 0;
  for (const RankOps& rank : schedule.ranks) ops += rank.size();
  return ops * static_cast<std::size_t>(plan.gpus() / plan.pp);
}

// Of the whole step, where this one stands for it.
bool is_affordable_unfolded(const Experiment& experiment, const Schedule& schedule) {
  const double longer = experiment.stands_for == 0 ? 1
                                                   : static_cast<double>(experiment.stands_for) /
                                                         static_cast<double>(schedule.microbatches);
  return longer * static_cast<double>(ops_of_every_rank(schedule, experiment.plan)) <= kAffordableOps;
}

// Without contention, the longest path distinguishes ranks that share a NIC only by the capacity of their
// folded port.
bool folding_shows(const Experiment& experiment) {
  return experiment.engine == Engine::simgrid && experiment.fold == Fold::replicas &&
         !are_symmetric(experiment.plan, experiment.cluster, experiment.conditions);
}

Fold fold_of(const Experiment& experiment, const Schedule& schedule) {
  if (!folding_shows(experiment) || experiment.conditions.has_jitter()) return experiment.fold;
  return is_affordable_unfolded(experiment, schedule) ? Fold::none : Fold::replicas;
}

void warn_of_folding(const Experiment& experiment, const Preparation& preparation, RunFacts& facts) {
  const Plan& plan = experiment.plan;
  if (preparation.tasks.instances.size() == static_cast<std::size_t>(plan.gpus()) ||
      !folding_shows(experiment))
    return;
  facts.warnings.push_back(fmt::format(
      "{} simulated ranks stand for {} ranks that are not identical; --fold none simulates every rank",
      preparation.tasks.instances.size(), plan.gpus()));
}

RunFacts facts_of(const Experiment& experiment, const Preparation& preparation) {
  const Plan& plan = experiment.plan;
  const StageNodes& nodes = experiment.stage_nodes;
  RunFacts facts;
  facts.engine = to_string(experiment.engine);
  if (experiment.order) {
    facts.schedule_name = experiment.order_name;
    facts.bubble_ideal = bubble_of_order(*experiment.order, plan);
  }
  facts.extrapolated_share =
      preparation.prices.priced_s > 0 ? preparation.prices.extrapolated_s / preparation.prices.priced_s : 0;
  facts.unmeasured_share =
      preparation.prices.priced_s > 0 ? preparation.prices.unmeasured_s / preparation.prices.priced_s : 0;
  facts.slowest_gpu = preparation.prices.slowest_gpu;
  facts.cluster_name = experiment.cluster.name;
  facts.gpus = plan.gpus();
  facts.gpus_per_node = experiment.cluster.node.gpus;
  facts.gpu_memory_bytes = experiment.cluster.gpu.memory_bytes;
  facts.headroom = experiment.headroom;
  facts.omitted_effects = experiment.omitted_effects;
  facts.peak_flops = peak_flops_of(experiment.cluster, plan);
  if (nodes.empty()) {
    add_nodes(experiment.cluster, experiment.profile, facts);
  } else {
    facts.peak_flops = 0;
    for (int rank = 0; rank < plan.pp; ++rank) {
      facts.memory_of_rank.push_back(nodes.of_rank(rank).cluster.gpu.memory_bytes);
      facts.peak_flops += peak_flops_of(nodes.of_rank(rank).cluster, plan) / plan.pp;
    }
    for (const NodeKind& kind : nodes.kinds) add_nodes(kind.cluster, kind.profile, facts);
  }
  facts.outside_allocator = outside_allocator(experiment, plan, preparation.work);
  note_launches(plan, preparation.prices, facts);
  const std::string misaligned = misaligned_gemms(preparation.work, plan, experiment.profile);
  if (!misaligned.empty()) facts.warnings.push_back(misaligned);
  warn_of_folding(experiment, preparation, facts);
  warn_of_pairs(plan, preparation.schedule, facts);
  warn_of_wide_norms(experiment.model, plan, facts);
  warn_of_untimed(experiment.model, plan, facts);
  if (!experiment.order && (plan.schedule == ScheduleName::v_half || plan.schedule == ScheduleName::v_min))
    facts.warnings.push_back(
        fmt::format("no closed form of the bubble of {} is published: the ideal bubble is shown as 0",
                    to_string(plan.schedule)));
  return facts;
}

}  // namespace

namespace {

// Runs all iterations, and keeps their step times and the timeline of the first.
void run_all(const Experiment& experiment, Iteration& iteration, std::unique_ptr<Simulator> simulator = {}) {
  const Preparation& ready = iteration.preparation;
  const Conditions& conditions = experiment.conditions;
  const auto loads = [&](int index) {
    return conditions.has_jitter() ? jittered(ready.loads, conditions, index) : ready.loads;
  };
  const auto take = [&](int index, Timeline timeline) {
    iteration.step_times_s.push_back(timeline.end());
    if (index == 0) iteration.timeline = std::move(timeline);
  };
  for (int index = 0; index < conditions.iterations; ++index) {
    const Loads now = loads(index);
    if (experiment.engine == Engine::reference) {
      take(index, reference(ready.schedule, ready.tasks, now));
    } else {
      if (!simulator) simulator = std::make_unique<Simulator>(now);
      take(index, simulator->run(ready.schedule, ready.tasks, now));
    }
  }
}

}  // namespace

namespace {

Schedule complete_order(const Experiment& experiment, const MessageSizes& sizes) {
  const GradientSync sync = gradient_sync(sizes, experiment.model, experiment.plan);
  return experiment.order ? complete_schedule(*experiment.order, experiment.plan, sync)
                          : complete_schedule(experiment.plan, sync);
}

}  // namespace

Schedule complete_order(const Experiment& experiment) {
  const Work work = make_work(experiment.model, experiment.plan);
  return complete_order(experiment,
                        message_sizes(work, experiment.model, experiment.plan, offloaded_bytes(work)));
}

std::string to_string(Engine engine) {
  return engine == Engine::simgrid ? "simgrid" : "reference";
}

namespace {

// Whether one instance of each pipeline rank is run.
bool is_run_folded(const Experiment& experiment, const Schedule& schedule) {
  return fold_of(experiment, schedule) == Fold::replicas && experiment.conditions.slow.empty() &&
         replicas_to_walk(experiment.plan, experiment.cluster, experiment.conditions).size() == 1;
}

// With `message_s`: one instance of each pipeline rank, although more may be run, and the times of messages.
Preparation prepare(const Experiment& experiment, KernelTimes* kernels, MessageTimes* message_s) {
  const Plan& plan = experiment.plan;
  Preparation ready;
  ready.work = make_work(experiment.model, plan);
  ready.prices = !experiment.stage_nodes.empty() ? price_stages(ready.work, plan, experiment.stage_nodes)
                 : kernels != nullptr
                     ? price(ready.work, plan, experiment.cluster, experiment.profile, *kernels)
                     : price(ready.work, plan, experiment.cluster, experiment.profile);
  const MessageSizes sizes = message_sizes(ready.work, experiment.model, plan, offloaded_bytes(ready.work));
  ready.schedule = complete_order(experiment, sizes);
  MessageTimes message_times;
  const auto loads_of = [&](const Tasks& tasks, const Conditions& conditions) {
    return make_loads(ready.schedule, tasks, plan, experiment.cluster, experiment.profile, ready.prices,
                      sizes, conditions, experiment.stage_nodes, message_times);
  };
  // Delays beside collectives are computed on one replica without slow parts.
  Conditions healthy = experiment.conditions;
  healthy.slow.clear();
  const Tasks folded = derive_tasks(ready.schedule, plan, {Fold::replicas, plan.one_queue, false});
  const Loads of_folded = loads_of(folded, healthy);
  const Delays delays = delays_beside_collectives(ready.schedule, folded, ready.prices.times, of_folded);
  if (message_s != nullptr) *message_s = message_times;
  if (message_s != nullptr || is_run_folded(experiment, ready.schedule)) {
    ready.tasks = folded;
    ready.loads = of_folded;
  } else {
    ready.tasks = derive_tasks(ready.schedule, plan,
                               {fold_of(experiment, ready.schedule), plan.one_queue, false,
                                replicas_to_walk(plan, experiment.cluster, experiment.conditions)});
    ready.loads = loads_of(ready.tasks, experiment.conditions);
  }
  delay(delays, ready.tasks, ready.loads);
  return ready;
}

}  // namespace

Preparation prepare(const Experiment& experiment) {
  return prepare(experiment, nullptr, nullptr);
}

Report report_of(const Experiment& experiment, const Preparation& preparation, const Timeline& timeline) {
  Report report = make_report(timeline, preparation.schedule, preparation.tasks, experiment.model,
                              experiment.plan, preparation.work, preparation.prices.times,
                              facts_of(experiment, preparation), experiment.with_split);
  if (experiment.with_reserved)
    add_reserved(report, preparation.schedule, preparation.work,
                 experiment.order ? kAllMicrobatches : shortened(experiment.plan).microbatches());
  if (experiment.with_split && experiment.with_band) report.uncertainty = uncertainty(report, experiment);
  return report;
}

namespace {

// The experiment with kernels slowed down by other ranks on the same GPU. A first run, in which all of them
// always compute, tells how much of the time they do.
Experiment among_others(Experiment experiment) {
  const double others = static_cast<double>(experiment.profile.measurement->with_concurrent_ranks->others);
  Experiment first = experiment;
  first.profile = with_concurrent_ranks(experiment.profile, 1);
  first.engine = Engine::reference;
  first.conditions.iterations = 1;
  Iteration look;
  look.preparation = prepare(first);
  run_all(first, look);
  experiment.profile = with_concurrent_ranks(
      std::move(experiment.profile),
      concurrent_compute(look.timeline, look.preparation.schedule, experiment.plan.gpus(), others));
  experiment.profile.measurement->with_concurrent_ranks.reset();
  return experiment;
}

}  // namespace

Iteration run_iteration(const Experiment& experiment) {
  if (shares_gpu(experiment)) {
    require_affordable(experiment, "ranks that share a GPU slow each other down");
    return run_iteration(among_others(experiment));
  }
  LongStep shorter;
  if (may_be_shortened(experiment)) shorter = run_long_step(experiment);
  if (shorter.iteration) return *std::move(shorter.iteration);
  require_affordable(experiment, shorter.why_not);
  Iteration iteration;
  iteration.preparation = prepare(experiment);
  run_all(experiment, iteration, std::move(shorter.simulator));
  iteration.report = report_of(experiment, iteration.preparation, iteration.timeline);
  return iteration;
}

double step_time_s(const Experiment& experiment, KernelTimes* kernels) {
  if (shares_gpu(experiment)) return step_time_s(among_others(experiment));
  if (may_be_shortened(experiment)) return run_iteration(experiment).report.step_time_s;
  Iteration iteration;
  iteration.preparation = prepare(experiment, kernels, nullptr);
  run_all(experiment, iteration);
  return iteration.timeline.end();
}

double least_simulated_s(const Experiment& experiment, KernelTimes* kernels) {
  if (shares_gpu(experiment)) return least_simulated_s(among_others(experiment));
  MessageTimes message_s;
  const Preparation ready = prepare(experiment, kernels, &message_s);
  return is_run_folded(experiment, ready.schedule)
             ? least_time(ready.tasks, ready.loads)
             : least_time_of_any_fold(ready.tasks, ready.loads, message_s);
}

}  // namespace rehearse
