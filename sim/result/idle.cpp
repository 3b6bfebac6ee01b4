#include "result/idle.h"

#include <algorithm>
#include <array>

namespace rehearse {

namespace {

class IdleWalk {
 public:
  IdleWalk(const TimelineRank& rank, const RankOps& ops, bool one_queue)
      : rank_(rank), ops_(ops), one_queue_(one_queue), ahead_(ops.size(), -1), seen_(ops.size(), -1) {
    std::array<std::int32_t, kStreams> last;
    last.fill(-1);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      std::int32_t& slot = last[one_queue ? 0 : static_cast<std::size_t>(ops[i].stream)];
      ahead_[i] = slot;
      slot = static_cast<std::int32_t>(i);
    }
  }

  std::vector<Gap> gaps(double step_time_s) {
    std::vector<Gap> gaps;
    double covered = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].stream != Stream::compute) continue;
      const Span& span = rank_.spans[i];
      if (span.begin > covered) {
        gaps.push_back({covered, span.begin, static_cast<std::int32_t>(i), {}});
        find_blockers(gaps.back());
      }
      covered = std::max(covered, span.end);
    }
    if (step_time_s > covered) {
      gaps.push_back({covered, step_time_s, -1, {}});
      find_trailing(gaps.back());
    }
    return gaps;
  }

 private:
  double end(std::int32_t op) const { return rank_.spans[static_cast<std::size_t>(op)].end; }
  const Op& at(std::int32_t op) const { return ops_[static_cast<std::size_t>(op)]; }

  void push_before(std::int32_t op, bool through_stream) {
    for (const std::int32_t wait : ops_.waits(at(op))) pending_.push_back(wait);
    const std::int32_t ahead = ahead_[static_cast<std::size_t>(op)];
    if (through_stream && ahead >= 0) pending_.push_back(ahead);
  }

  double ready(std::int32_t op) const {
    const std::int32_t ahead = ahead_[static_cast<std::size_t>(op)];
    double ready = ahead < 0 ? 0 : end(ahead);
    for (const std::int32_t wait : ops_.waits(at(op))) ready = std::max(ready, end(wait));
    return ready;
  }

  void find_blockers(Gap& gap) {
    push_before(gap.next, one_queue_);
    while (!pending_.empty()) {
      const std::int32_t op = pending_.back();
      pending_.pop_back();
      std::int32_t& seen = seen_[static_cast<std::size_t>(op)];
      // An op that ended before the gap cannot have an unfinished op before it.
      if (seen == gap.next || end(op) <= gap.begin || at(op).stream == Stream::compute) continue;
      seen = gap.next;
      gap.blockers.push_back({op, ready(op)});
      push_before(op, true);
    }
  }

  void find_trailing(Gap& gap) const {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const auto op = static_cast<std::int32_t>(i);
      if (ops_[i].stream != Stream::compute && end(op) > gap.begin) gap.blockers.push_back({op, ready(op)});
    }
  }

  const TimelineRank& rank_;
  const RankOps& ops_;
  bool one_queue_;
  std::vector<std::int32_t> ahead_;  // by op: the one before it in its stream, or -1
  std::vector<std::int32_t> seen_;   // by op: the gap (its next op) that met it last
  std::vector<std::int32_t> pending_;
};

}  // namespace

std::vector<Gap> compute_gaps(const TimelineRank& rank, const RankOps& ops, double step_time_s,
                              bool one_queue) {
  return IdleWalk(rank, ops, one_queue).gaps(step_time_s);
}

double& Exposure::of(OpKind kind) {
  if (kind == OpKind::reduce_grad) return dp;
  if (kind == OpKind::reduce_tied) return tied;
  if (kind == OpKind::reduce_replicas) return replicas;
  if (kind == OpKind::unshard || kind == OpKind::reshard) return gather;
  if (is_host_copy(kind)) return offload;
  return pp;
}

Exposure& Exposure::operator+=(const Exposure& other) {
  pp += other.pp;
  dp += other.dp;
  tied += other.tied;
  gather += other.gather;
  replicas += other.replicas;
  offload += other.offload;
  return *this;
}

std::vector<GapPart> parts_of(const Gap& gap, const TimelineRank& rank) {
  std::vector<std::int32_t> moving;
  for (const Blocker& blocker : gap.blockers) moving.push_back(blocker.op);
  const auto span = [&](std::int32_t op) -> const Span& { return rank.spans[static_cast<std::size_t>(op)]; };
  std::sort(moving.begin(), moving.end(), [&](std::int32_t a, std::int32_t b) {
    return span(a).end != span(b).end ? span(a).end > span(b).end : a < b;
  });
  std::vector<GapPart> parts;   // the last one first
  double free_until = gap.end;  // ends fall: earlier parts lie after their least begin
  std::int32_t awaited = -1;    // the op that transfers data from free_until on
  for (const std::int32_t op : moving) {
    const double begin = std::max(gap.begin, span(op).begin);
    const double end = std::min(free_until, span(op).end);
    if (awaited < 0 && span(op).begin >= free_until) awaited = op;
    if (end <= begin) continue;
    if (end < free_until) parts.push_back({end, free_until, awaited, false});
    parts.push_back({begin, end, op, true});
    free_until = begin;
    awaited = op;
  }
  if (free_until > gap.begin) parts.push_back({gap.begin, free_until, awaited, false});
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Exposure exposed(const Gap& gap, const TimelineRank& rank, const RankOps& ops) {
  Exposure exposure;
  for (const GapPart& part : parts_of(gap, rank))
    if (part.moves) exposure.of(ops[static_cast<std::size_t>(part.op)].kind) += part.end - part.begin;
  return exposure;
}

}  // namespace rehearse
