#include "result/report.h"

#include <algorithm>

#include "memory/memory.h"
#include "plan/schedules.h"
#include "plan/work/tower.h"
#include "result/communication.h"
#include "result/critical_path.h"
#include "result/shares.h"

namespace rehearse {

namespace {

double ratio(double value, double over) {
  return over > 0 ? value / over : 0;
}

void add_throughput(Report& report, const Work& work) {
  const Plan& plan = report.plan;
  const double step = report.step_time_s;
  const double gpus = report.facts.gpus;
  report.samples_per_s = ratio(static_cast<double>(plan.global_batch), step);
  report.tokens_per_s = report.samples_per_s * static_cast<double>(plan.seq);
  report.tokens_per_s_per_gpu = ratio(report.tokens_per_s, gpus);
  const FlopCount flops = count_flops(work, plan);
  const double runs = static_cast<double>(plan.microbatches()) * plan.dp;
  const double model_rate = ratio(ratio(flops.model() * runs, step), gpus);
  const double hardware_rate = ratio(ratio(flops.hardware() * runs, step), gpus);
  report.model_tflops_per_gpu = model_rate / 1e12;
  report.hardware_tflops_per_gpu = hardware_rate / 1e12;
  report.mfu = ratio(model_rate, report.facts.peak_flops);
  report.hfu = ratio(hardware_rate, report.facts.peak_flops);
}

void add_busy(Report& report, const Timeline& timeline, const Schedule& schedule) {
  for (const TimelineRank& rank : timeline.ranks) {
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    report.busy_s.push_back(compute_busy(rank, ops));
    report.pipeline_rank_of.push_back(rank.instance.pipeline_rank);
  }
}

// The split of each rank, their mean, and the communication of the rank at `critical`.
void add_rank_splits(Report& report, const Timeline& timeline, const Schedule& schedule, const Work& work,
                     const OpTimes& times, const std::vector<double>& path_s) {
  const double weight = 1 / static_cast<double>(timeline.ranks.size());
  const std::size_t critical = largest_share(path_s);
  const MessageSizes sizes = message_sizes(work, report.model, report.plan, offloaded_bytes(work));
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    const TimelineRank& rank = timeline.ranks[r];
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    const RankTime time = rank_time(rank, ops, times, report.step_time_s, report.plan.one_queue);
    report.ranks.push_back({rank.instance.rank, rank.instance.pipeline_rank, time.time, path_s[r]});
    report.mean_time.add(time.time, weight);
    if (r != critical) continue;
    report.critical_rank = rank.instance.pipeline_rank;
    report.communication = communication_lines(rank, ops, report.plan, work, sizes, time);
  }
}

// Peak times on the drawn timeline, independent of when a rank's own iteration begins.
void add_peak_times(Report& report, const Timeline& timeline) {
  for (RankMemory& memory : report.memory) {
    const auto rank = std::find_if(
        timeline.ranks.begin(), timeline.ranks.end(),
        [&](const TimelineRank& candidate) { return candidate.instance.pipeline_rank == memory.rank; });
    if (rank == timeline.ranks.end() || memory.peak_op < 0) continue;
    memory.peak_time_s = rank->spans[static_cast<std::size_t>(memory.peak_op)].begin;
  }
}

// The begin of a rank's first compute op.
double own_begin(const TimelineRank& rank, const Schedule& schedule) {
  const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
  const auto first = std::ranges::find(ops.ops(), Stream::compute, &Op::stream);
  if (first == ops.ops().end()) return 0;
  return rank.spans[static_cast<std::size_t>(first - ops.ops().begin())].begin;
}

// Some ranks need not wait for each other at the optimizer step. They begin the next iteration as far apart
// as they began this one, so an iteration lasts as long as its longest rank (Qi et al. 2023, section 4).
Timeline from_own_begin(Timeline timeline, const Schedule& schedule) {
  for (TimelineRank& rank : timeline.ranks) {
    const double begin = own_begin(rank, schedule);
    for (Span& span : rank.spans) span = {span.begin - begin, span.end - begin};
  }
  return timeline;
}

// Where ranks do not synchronize, the iteration of the longest rank.
PathWindow window_of(const Timeline& timeline, const Schedule& schedule, const Plan& plan) {
  PathWindow window;
  if (plan.sync_step) return window;
  double longest_s = -1;
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    const double begin = own_begin(timeline.ranks[r], schedule);
    const std::vector<Span>& spans = timeline.ranks[r].spans;
    const double own_s = spans.empty() ? 0 : std::ranges::max_element(spans, {}, &Span::end)->end - begin;
    if (own_s <= longest_s) continue;
    longest_s = own_s;
    window = {begin, static_cast<int>(r)};
  }
  return window;
}

Report report_of(const Timeline& timeline, const Schedule& schedule, const Model& model, const Plan& plan,
                 const Work& work, const RunFacts& facts) {
  Report report;
  report.facts = facts;
  report.plan = plan;
  report.model = model;
  report.step_time_s = timeline.end();
  report.parameters = count_parameters(model).total;
  if (const Tower* tower = tower_of_step(model, plan); tower != nullptr)
    report.parameters += count_tower(*tower);
  add_throughput(report, work);
  add_busy(report, timeline, schedule);
  add_bubble(report);
  report.memory = rank_memory(schedule, report.plan, work, report.facts.workspace_bytes);
  if (!facts.memory_of_rank.empty())
    report.facts.gpu_memory_bytes = facts.memory_of_rank[static_cast<std::size_t>(fullest_gpu(report).rank)];
  return report;
}

}  // namespace

double TimeShares::sum() const {
  return compute + recompute + optimizer + bubble + exposed_tp + exposed_pp + exposed_dp + exposed_cp +
         exposed_ep + exposed_offload;
}

TimeShares& TimeShares::add(const TimeShares& other, double weight) {
  compute += weight * other.compute;
  recompute += weight * other.recompute;
  optimizer += weight * other.optimizer;
  bubble += weight * other.bubble;
  exposed_tp += weight * other.exposed_tp;
  exposed_pp += weight * other.exposed_pp;
  exposed_dp += weight * other.exposed_dp;
  exposed_cp += weight * other.exposed_cp;
  exposed_ep += weight * other.exposed_ep;
  exposed_offload += weight * other.exposed_offload;
  return *this;
}

void add_bubble(Report& report) {
  report.bubble_mean = report.bubble_worst = 0;
  report.bubble_worst_rank = 0;
  for (std::size_t r = 0; r < report.busy_s.size(); ++r) {
    const double bubble = bubble_fraction(report.busy_s[r], report.step_time_s);
    report.bubble_mean += bubble / static_cast<double>(report.busy_s.size());
    if (bubble > report.bubble_worst + 1e-9) {  // equal ranks differ by rounding: name the first
      report.bubble_worst = bubble;
      report.bubble_worst_rank = report.pipeline_rank_of[r];
    }
  }
  report.bubble_ideal = report.facts.bubble_ideal.value_or(ideal_bubble_fraction(report.plan));
}

int critical_rank(const Report& report) {
  std::vector<double> path_s;
  for (const RankShares& rank : report.ranks) path_s.push_back(rank.path_s);
  return report.ranks[largest_share(path_s)].pipeline_rank;
}

std::vector<Footprint> footprints(const Report& report) {
  const RunFacts& facts = report.facts;
  std::vector<Footprint> gpus = footprints(report.memory, facts.outside_allocator, facts.gpu_memory_bytes);
  if (facts.memory_of_rank.empty()) return gpus;
  for (Footprint& gpu : gpus) gpu.capacity_bytes = facts.memory_of_rank[static_cast<std::size_t>(gpu.rank)];
  return gpus;
}

Footprint fullest_gpu(const Report& report) {
  return fullest(footprints(report));
}

MemoryVerdict memory_verdict(const Report& report) {
  MemoryVerdict verdict = memory_verdict(footprints(report), report.facts.headroom);
  weigh(report.facts.omitted_effects, verdict);
  return verdict;
}

void add_reserved(Report& report, const Schedule& schedule, const Work& work, std::int64_t microbatches) {
  const int heaviest = heaviest_rank(report).rank, fullest = fullest_gpu(report).rank;
  for (const Footprint& gpu : footprints(report)) {
    if (!gpu.fits() || (gpu.rank != heaviest && gpu.rank != fullest)) continue;
    const auto at = static_cast<std::size_t>(gpu.rank);
    RankMemory& memory = report.memory[at];
    memory.reserved_bytes = reserved_bytes(schedule.ranks[at], memory, report.plan, work,
                                           gpu.capacity_bytes - gpu.outside.all(), microbatches);
  }
}

std::string verdict_sentence(const Report& report) {
  const std::string verdict = in_words(memory_verdict(report)), &way = report.facts.way_to_fit;
  return way.empty() ? verdict : verdict + "; " + way;
}

RankMemory heaviest_rank(const Report& report) {
  if (report.memory.empty()) return {};
  if (!report.facts.memory_of_rank.empty())
    return report.memory[static_cast<std::size_t>(fullest_gpu(report).rank)];
  return *std::ranges::max_element(report.memory, {}, &RankMemory::peak_bytes);
}

IdleShares idle_shares(const Report& report) {
  return {ratio(report.mean_time.bubble, report.step_time_s),
          ratio(report.mean_time.waiting(), report.step_time_s)};
}

std::string schedule_name(const Report& report) {
  return report.facts.schedule_name.empty() ? to_string(report.plan.schedule) : report.facts.schedule_name;
}

double ideal_bubble_fraction(const Plan& plan) {
  return traits(plan.schedule).ideal_bubble(plan);
}

const char* ideal_bubble_name(const Report& report) {
  return report.facts.bubble_ideal ? "bubble in equal stages" : "ideal bubble";
}

Report make_report(const Timeline& timeline, const Schedule& schedule, const Tasks& tasks, const Model& model,
                   const Plan& plan, const Work& work, const OpTimes& times, const RunFacts& facts,
                   bool with_split) {
  require_fits(timeline, schedule);
  std::optional<Timeline> shifted;
  if (!plan.sync_step) shifted = from_own_begin(timeline, schedule);
  const Timeline& iteration = shifted ? *shifted : timeline;
  Report report = report_of(iteration, schedule, model, plan, work, facts);
  if (with_split && !timeline.ranks.empty()) {
    const std::vector<PathSegment> path =
        critical_path(timeline, schedule, tasks, plan.one_queue, window_of(timeline, schedule, plan));
    report.time = path_time(path, timeline, schedule, times).time;
    add_rank_splits(report, iteration, schedule, work, times, path_seconds(path, timeline));
  }
  add_peak_times(report, timeline);
  return report;
}

}  // namespace rehearse
