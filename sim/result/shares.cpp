#include "result/shares.h"

#include <algorithm>
#include <numeric>

namespace rehearse {

namespace {

void add_busy(TimeShares& shares, const TimeParts& parts, double seconds, OpKind kind) {
  const double total = parts.total();
  if (!(total > 0)) {
    (kind == OpKind::step ? shares.optimizer : shares.compute) += seconds;
    return;
  }
  const double scale = seconds / total;
  shares.compute += parts.compute * scale;
  shares.recompute += parts.recompute * scale;
  shares.optimizer += parts.optimizer * scale;
  shares.exposed_tp += parts.tp * scale;
  shares.exposed_cp += parts.cp * scale;
  shares.exposed_ep += parts.ep * scale;
}

TimeParts unpaired_parts(OpKind kind, const StageTimes& stage) {
  switch (kind) {
    case OpKind::forward:
      return stage.forward;
    case OpKind::backward:
      return (TimeParts(stage.backward_input) += stage.backward_weight) += stage.side_by_side;
    case OpKind::backward_input:
      return stage.backward_input;
    case OpKind::backward_weight:
      return stage.backward_weight;
    default:
      return {};
  }
}

// Adds `seconds` of the span of op `i`, divided in proportion to the whole op.
void add_op(TimeShares& shares, const TimelineRank& rank, const RankOps& ops, std::size_t i, double seconds,
            const OpTimes& times) {
  const TimeParts priced = priced_parts(ops[i], rank.instance.pipeline_rank, times);
  double as_priced = seconds;
  if (!rank.lost.empty() && seconds > 0) {
    const TimeParts lost = rank.lost[i] * (seconds / rank.spans[i].seconds());
    shares.exposed_tp += lost.tp;
    shares.exposed_cp += lost.cp;
    shares.exposed_ep += lost.ep;
    TimeParts kernels = priced;
    kernels.tp = kernels.cp = kernels.ep = 0;
    add_busy(shares, kernels, lost.compute, ops[i].kind);
    as_priced -= lost.total();
  }
  add_busy(shares, priced, as_priced, ops[i].kind);
}

void add_exposed(RankTime& time) {
  const Exposure& exposed = time.exposed;
  time.time.exposed_pp = exposed.pp;
  time.time.exposed_dp = exposed.dp + exposed.tied + exposed.gather + exposed.replicas;
  time.time.exposed_offload = exposed.offload;
}

// Indices of the ops of the compute stream, in its order.
std::vector<std::int32_t> compute_stream(const RankOps& ops) {
  std::vector<std::int32_t> indices;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].stream == Stream::compute) indices.push_back(static_cast<std::int32_t>(i));
  return indices;
}

// Adds the compute of a rank during a segment of the path; returns its seconds.
double add_computing(TimeShares& shares, const PathSegment& segment, const TimelineRank& rank,
                     const RankOps& ops, const std::vector<std::int32_t>& computing, const OpTimes& times) {
  const auto span = [&](std::int32_t op) -> const Span& { return rank.spans[static_cast<std::size_t>(op)]; };
  auto op = std::partition_point(computing.begin(), computing.end(),
                                 [&](std::int32_t each) { return span(each).end <= segment.begin; });
  double covered = segment.begin, seconds = 0;
  for (; op != computing.end() && span(*op).begin < segment.end; ++op) {
    const double from = std::max(covered, span(*op).begin), to = std::min(segment.end, span(*op).end);
    if (to <= from) continue;
    add_op(shares, rank, ops, static_cast<std::size_t>(*op), to - from, times);
    seconds += to - from;
    covered = to;
  }
  return seconds;
}

}  // namespace

double hidden_exchange_s(const Op& op, const OpTimes& times) {
  if (op.beside < 0) return 0;
  const auto own = static_cast<std::size_t>(op.stage), other = static_cast<std::size_t>(op.beside);
  if (std::max(own, other) >= times.stages.size()) return 0;
  const bool is_forward = op.kind == OpKind::forward;
  const HiddenExchanges hidden = hidden_exchanges(times.stages[is_forward ? own : other].forward_phases,
                                                  times.stages[is_forward ? other : own].backward_phases);
  return is_forward ? hidden.forward : hidden.backward;
}

TimeParts priced_parts(const Op& op, int pipeline_rank, const OpTimes& times) {
  if (op.kind == OpKind::step) {
    const auto rank = static_cast<std::size_t>(pipeline_rank);
    return rank < times.step.size() ? times.step[rank] : TimeParts{};
  }
  if (op.stage >= times.stages.size()) return {};
  TimeParts parts = unpaired_parts(op.kind, times.stages[op.stage]);
  parts.ep -= hidden_exchange_s(op, times);
  return parts;
}

RankTime rank_time(const TimelineRank& rank, const RankOps& ops, const OpTimes& times, double step_time_s,
                   bool one_queue) {
  RankTime result;
  double covered = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].stream != Stream::compute) continue;
    const Span& span = rank.spans[i];
    add_op(result.time, rank, ops, i, std::max(0.0, span.end - std::max(covered, span.begin)), times);
    covered = std::max(covered, span.end);
  }
  for (const Gap& gap : compute_gaps(rank, ops, step_time_s, one_queue)) {
    const Exposure part = exposed(gap, rank, ops);
    result.exposed += part;
    result.time.bubble += gap.end - gap.begin - part.total();
  }
  add_exposed(result);
  return result;
}

RankTime path_time(const std::vector<PathSegment>& path, const Timeline& timeline, const Schedule& schedule,
                   const OpTimes& times) {
  RankTime result;
  std::vector<std::vector<std::int32_t>> computing(schedule.ranks.size());  // by list, computed on demand
  for (const PathSegment& segment : path) {
    const TimelineRank& rank = timeline.ranks[segment.rank];
    const auto list = static_cast<std::size_t>(rank.instance.pipeline_rank);
    const RankOps& ops = schedule.ranks[list];
    const double seconds = segment.end - segment.begin;
    if (segment.op < 0) {
      result.time.bubble += seconds;
      continue;
    }
    const auto op = static_cast<std::size_t>(segment.op);
    if (ops[op].stream == Stream::compute) {
      add_op(result.time, rank, ops, op, seconds, times);
      continue;
    }
    if (computing[list].empty()) computing[list] = compute_stream(ops);
    const double hidden_s = add_computing(result.time, segment, rank, ops, computing[list], times);
    result.exposed.of(ops[op].kind) += seconds - hidden_s;
  }
  add_exposed(result);
  return result;
}

std::vector<double> path_seconds(const std::vector<PathSegment>& path, const Timeline& timeline) {
  std::vector<double> seconds(timeline.ranks.size(), 0);
  for (const PathSegment& segment : path) seconds[segment.rank] += segment.end - segment.begin;
  return seconds;
}

std::size_t largest_share(const std::vector<double>& path_s) {
  constexpr double kEqual = 1e-9;  // of the iteration; rounding must not choose among equal ranks
  const double all_s = std::accumulate(path_s.begin(), path_s.end(), 0.0);
  std::size_t largest = 0;
  for (std::size_t r = 1; r < path_s.size(); ++r)
    if (path_s[r] > path_s[largest] + kEqual * all_s) largest = r;
  return largest;
}

}  // namespace rehearse
