#include "result/shares.h"

#include <algorithm>

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

double last_end(const TimelineRank& rank) {
  double last = 0;
  for (const Span& span : rank.spans) last = std::max(last, span.end);
  return last;
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
    const double busy = std::max(0.0, span.end - std::max(covered, span.begin));
    covered = std::max(covered, span.end);
    double as_priced = busy;
    if (!rank.contended.empty() && busy > 0) {
      const TimeParts lost = rank.contended[i] * (busy / span.seconds());
      result.time.exposed_tp += lost.tp;
      result.time.exposed_cp += lost.cp;
      result.time.exposed_ep += lost.ep;
      as_priced -= lost.total();
    }
    add_busy(result.time, priced_parts(ops[i], rank.instance.pipeline_rank, times), as_priced, ops[i].kind);
  }
  for (const Gap& gap : compute_gaps(rank, ops, step_time_s, one_queue)) {
    const Exposure part = exposed(gap, rank, ops);
    result.exposed += part;
    result.time.bubble += gap.end - gap.begin - part.total();
  }
  result.time.exposed_pp = result.exposed.pp;
  result.time.exposed_dp =
      result.exposed.dp + result.exposed.tied + result.exposed.gather + result.exposed.replicas;
  result.time.exposed_offload = result.exposed.offload;
  return result;
}

std::size_t critical_rank(const Timeline& timeline, const Schedule& schedule) {
  std::size_t critical = 0;
  double latest = -1, busiest = -1;
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    const TimelineRank& rank = timeline.ranks[r];
    const double last = last_end(rank);
    const double busy =
        compute_busy(rank, schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)]);
    if (last > latest || (last == latest && busy > busiest)) {
      critical = r;
      latest = last;
      busiest = busy;
    }
  }
  return critical;
}

}  // namespace rehearse
