#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "schedule/passes.h"
#include "schedule/placement.h"

namespace rehearse {

namespace {

// The ops of a rank after which gradients are complete.
struct LastBackwards {
  std::vector<std::int32_t> of_stage;  // by stage; -1 where the rank does not run it
  std::vector<int> stages;             // of the rank, in the order of these ops
};

LastBackwards find_last_backwards(const RankOps& ops, int stages) {
  LastBackwards last{std::vector<std::int32_t>(static_cast<std::size_t>(stages), -1), {}};
  for (auto i = static_cast<std::int32_t>(ops.size()); i-- > 0;) {
    const Op& op = ops[static_cast<std::size_t>(i)];
    if (!completes_gradient(op.kind) || last.of_stage[op.stage] >= 0) continue;
    last.of_stage[op.stage] = i;
    last.stages.push_back(op.stage);
  }
  std::reverse(last.stages.begin(), last.stages.end());
  return last;
}

Op part_of(Op op, int part, int parts) {
  op.part = static_cast<std::uint16_t>(part);
  op.parts = static_cast<std::uint16_t>(parts);
  return op;
}

// Ops on a stage's gradients, or on a part of them, once they are complete.
void add_reduction(RankOps& to, const GradientSync& sync, int stage, int part, int parts,
                   std::int32_t after) {
  const auto then = [&](OpKind kind) { after = to.add(part_of(make_op(kind, stage), part, parts), {after}); };
  if (sync.replicas > 1) then(OpKind::reduce_grad);
  if (sync.replicas > 1 && sync.across) then(OpKind::reduce_replicas);
  if (sync.to_host) then(OpKind::offload_grad);
}

// Copies the list. With `in_buckets`, backwards are split into parts, and each part is followed by its
// reduction. Returns the new index of the rank's last backward.
std::int32_t copy_with_buckets(const RankOps& from, const LastBackwards& last, const GradientSync& sync,
                               bool in_buckets, RankOps& to) {
  std::vector<std::int32_t> moved(from.size());
  std::vector<std::int32_t> waits;
  std::int32_t last_backward = -1;
  std::int32_t reduction = -1;  // that the next op on the compute stream waits for
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Op& op = from[i];
    waits.clear();
    for (const std::int32_t wait : from.waits(op)) waits.push_back(moved[static_cast<std::size_t>(wait)]);
    const bool reduces = in_buckets && completes_gradient(op.kind) &&
                         (sync.each_microbatch || last.of_stage[op.stage] == static_cast<std::int32_t>(i));
    const int parts = reduces ? sync.buckets[op.stage] : 1;
    for (int part = 0; part < parts; ++part) {
      if (op.stream == Stream::compute && reduction >= 0) waits.push_back(std::exchange(reduction, -1));
      moved[i] = to.add(part_of(op, part, parts), waits);
      waits.clear();  // the other parts follow on the same stream
      if (reduces) add_reduction(to, sync, op.stage, part, parts, moved[i]);
      if (reduces && sync.alone) reduction = static_cast<std::int32_t>(to.size()) - 1;
      if (completes_gradient(op.kind)) last_backward = moved[i];
    }
  }
  return last_backward;
}

bool synchronises(const GradientSync& sync) {
  return sync.replicas > 1 || sync.to_host;
}

void require_valid(const Schedule& schedule, const GradientSync& sync) {
  if (synchronises(sync) && sync.overlap && sync.buckets.size() != static_cast<std::size_t>(schedule.stages))
    throw std::logic_error(
        fmt::format("{} bucket counts for {} stages", sync.buckets.size(), schedule.stages));
  for (const int count : sync.buckets)
    if (count < 1 || count > std::numeric_limits<decltype(Op::parts)>::max())
      throw std::logic_error(fmt::format("a stage cannot have {} gradient buckets", count));
  for (const RankOps& ops : schedule.ranks)
    for (const Op& op : ops.ops())
      if (op.parts != 1 || op.kind > OpKind::reload || op.stage >= schedule.stages)
        throw std::logic_error("gradient sync is added once, to whole ops, not to " + to_string(op));
}

void add_step(RankOps& to, const GradientSync& sync, const std::vector<int>& stages) {
  std::int32_t last_reduction = -1, last_copy = -1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].stream == Stream::gradient) last_reduction = static_cast<std::int32_t>(i);
    if (to[i].kind == OpKind::offload_grad) last_copy = static_cast<std::int32_t>(i);
  }
  const std::int32_t step = to.add(make_op(OpKind::step, *std::min_element(stages.begin(), stages.end())),
                                   {last_reduction, last_copy});
  if (!sync.to_host) return;
  for (const int stage : stages) to.add(make_op(OpKind::reload_param, stage), {step});
}

}  // namespace

Schedule add_gradient_sync(const Schedule& schedule, const GradientSync& sync) {
  require_valid(schedule, sync);
  const std::vector<int> rank_of = ranks_by_stage(schedule);
  const bool reduces = synchronises(sync);
  const bool tied = sync.tied && rank_of.front() != rank_of.back();
  Schedule result{schedule.pp, schedule.stages, schedule.microbatches, {}};
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    const RankOps& from = schedule.ranks[static_cast<std::size_t>(rank)];
    RankOps& to = result.ranks.emplace_back();
    const LastBackwards last = find_last_backwards(from, schedule.stages);
    if (last.stages.empty()) {
      to = from;
      continue;
    }
    const std::int32_t last_backward = copy_with_buckets(from, last, sync, reduces && sync.overlap, to);
    if (reduces && !sync.overlap)
      for (const int stage : last.stages) add_reduction(to, sync, stage, 0, 1, last_backward);
    if (tied && rank == rank_of.front()) to.add(make_op(OpKind::reduce_tied, 0), {last_backward});
    if (tied && rank == rank_of.back())
      to.add(make_op(OpKind::reduce_tied, schedule.stages - 1), {last_backward});
    add_step(to, sync, last.stages);
  }
  return result;
}

}  // namespace rehearse
