#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "schedule/checks.h"
#include "schedule/placement.h"

namespace rehearse {

namespace {

// The last op that has ended on each stream of a rank when an op begins. This is the happens-before relation
// of CUDA streams and events, as vector clocks (Fidge 1988; Mattern 1989) with one entry a stream.
using Clock = std::array<std::int32_t, kStreams>;

std::vector<Clock> clocks_at_begin(const RankOps& ops) {
  std::vector<Clock> begin(ops.size());
  std::array<std::int32_t, kStreams> last;
  last.fill(-1);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    begin[i].fill(-1);
    const auto after = [&](std::int32_t earlier) {
      if (earlier < 0) return;
      const auto e = static_cast<std::size_t>(earlier);
      for (std::size_t s = 0; s < kStreams; ++s) begin[i][s] = std::max(begin[i][s], begin[e][s]);
      std::int32_t& own = begin[i][static_cast<std::size_t>(ops[e].stream)];
      own = std::max(own, earlier);
    };
    std::int32_t& before = last[static_cast<std::size_t>(ops[i].stream)];
    after(before);
    for (const std::int32_t wait : ops.waits(ops[i])) after(wait);
    before = static_cast<std::int32_t>(i);
  }
  return begin;
}

class WaitCheck {
 public:
  WaitCheck(const Schedule& schedule, const OpIndex& index, const std::vector<int>& rank_of, int rank,
            Faults& faults)
      : schedule_(schedule),
        index_(index),
        rank_of_(rank_of),
        rank_(rank),
        ops_(schedule.ranks[static_cast<std::size_t>(rank)]),
        clocks_(clocks_at_begin(ops_)),
        faults_(faults) {}

  void run() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (op.part == 0 && is_compute(op.kind)) check_input(i);
      if (op.kind == OpKind::send_forward) need(i, OpKind::forward);
      if (op.kind == OpKind::send_backward) need(i, producer_of_gradient(op));
      if (op.kind == OpKind::reduce_grad || op.kind == OpKind::reduce_tied) check_reduction(i);
      if (op.kind == OpKind::step) check_step(i);
      if (is_host_copy(op.kind)) check_copy(i);
    }
    check_units();
  }

 private:
  bool elsewhere(int stage) const {
    return stage >= 0 && stage < schedule_.stages && rank_of_[static_cast<std::size_t>(stage)] != rank_;
  }

  OpKind producer_of_gradient(const Op& op) const {
    const bool split = index_.find(rank_, OpKind::backward_input, op.stage, op.microbatch) >= 0;
    return split ? OpKind::backward_input : OpKind::backward;
  }

  void check_input(std::size_t i) {
    const Op& op = ops_[i];
    if (op.kind == OpKind::forward && elsewhere(op.stage - 1)) need(i, OpKind::recv_forward);
    const bool reads_gradient = op.kind == OpKind::backward || op.kind == OpKind::backward_input;
    if (reads_gradient && elsewhere(op.stage + 1)) need(i, OpKind::recv_backward);
    const bool offloads = index_.find(rank_, OpKind::offload, op.stage, op.microbatch) >= 0;
    if (reads_gradient && offloads) need(i, OpKind::reload);
  }

  void check_copy(std::size_t i) {
    const Op& op = ops_[i];
    if (op.kind == OpKind::offload) need(i, OpKind::forward);
    if (op.kind == OpKind::reload) need(i, OpKind::offload);
    if (op.kind == OpKind::reload_param)
      need_latest(i, [](const Op& other) { return other.kind == OpKind::step; });
    if (op.kind != OpKind::offload_grad) return;
    check_reduction(i);
    need_latest(i, [&op](const Op& other) {
      const bool reduces = other.kind == OpKind::reduce_grad || other.kind == OpKind::reduce_replicas;
      return reduces && other.stage == op.stage && other.part == op.part;
    });
    if (index_.find(rank_, OpKind::reload_param, op.stage, 0) < 0)
      lacks(i, make_op(OpKind::reload_param, op.stage));
  }

  // Of the matching ops issued before op `i`, the latest must have ended. No match is no fault.
  template <typename Which>
  void need_latest(std::size_t i, const Which& which) {
    for (auto k = static_cast<std::int32_t>(i); k-- > 0;) {
      const Op& other = ops_[static_cast<std::size_t>(k)];
      if (!which(other)) continue;
      if (!ended_before(k, i)) report(i, other);
      return;
    }
  }

  // The last part of a reduction must cover the gradients that the stage's last microbatch in issue order
  // adds. Where each microbatch is reduced, it must cover those of the latest microbatch before it.
  void check_reduction(std::size_t i) {
    const Op& op = ops_[i];
    if (op.part + 1 != op.parts) return;
    const bool repeated = std::any_of(
        ops_.ops().begin() + static_cast<std::ptrdiff_t>(i) + 1, ops_.ops().end(), [&](const Op& later) {
          return later.kind == op.kind && later.stage == op.stage && later.part == op.part;
        });
    for (auto k = static_cast<std::int32_t>(repeated ? i : ops_.size()); k-- > 0;) {
      const Op& other = ops_[static_cast<std::size_t>(k)];
      if (!completes_gradient(other.kind) || other.stage != op.stage) continue;
      if (!ended_before(k, i)) report(i, other);
      return;
    }
  }

  void check_step(std::size_t i) {
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      const bool needed = completes_gradient(ops_[k].kind) || ops_[k].stream == Stream::gradient ||
                          ops_[k].kind == OpKind::offload_grad;
      if (!needed || ended_before(static_cast<std::int32_t>(k), i)) continue;
      report(i, ops_[k]);
      return;
    }
  }

  // A unit of a stage whose parameters are dropped and gathered again.
  struct Unit {
    std::int32_t gathered = -1;  // its UNSHARD, while it is whole
    std::int32_t used = -1;      // the latest op that read it
  };

  void check_units() {
    std::map<int, std::vector<Unit>> stages;
    for (const Op& op : ops_.ops())
      if (op.kind == OpKind::reshard) stages[op.stage].resize(op.parts);
    for (std::size_t i = 0; i < ops_.size() && !stages.empty(); ++i) {
      const Op& op = ops_[i];
      const auto found = stages.find(op.stage);
      if (found == stages.end()) continue;
      std::vector<Unit>& units = found->second;
      const bool gathers = op.kind == OpKind::unshard;
      if ((gathers || op.kind == OpKind::reshard) && op.part >= units.size()) continue;
      if (gathers) units[op.part].gathered = static_cast<std::int32_t>(i);
      if (op.kind == OpKind::reshard) drop(i, units[op.part]);
      if (is_compute(op.kind) && op.kind != OpKind::backward_weight) use(i, units);
    }
  }

  void drop(std::size_t i, Unit& unit) {
    if (unit.used >= 0 && !ended_before(unit.used, i)) report(i, ops_[static_cast<std::size_t>(unit.used)]);
    unit.gathered = -1;
  }

  // A part of a forward reads one unit. A part of a backward reads the unit that mirrors it. A whole op reads
  // all.
  void use(std::size_t i, std::vector<Unit>& units) {
    const Op& op = ops_[i];
    for (std::size_t u = 0; u < units.size(); ++u) {
      const std::size_t part = op.kind == OpKind::forward ? u : units.size() - 1 - u;
      if (op.parts == units.size() && op.part != part) continue;
      units[u].used = static_cast<std::int32_t>(i);
      if (units[u].gathered < 0)
        faults_.push_back(
            fmt::format("{} on rank {} reads unit {}, which is not gathered", to_string(op), rank_, u));
      else if (!ended_before(units[u].gathered, i))
        report(i, ops_[static_cast<std::size_t>(units[u].gathered)]);
    }
  }

  void need(std::size_t i, OpKind kind) {
    const std::int32_t needed = index_.find(rank_, kind, ops_[i].stage, ops_[i].microbatch);
    if (needed < 0)
      lacks(i, make_op(kind, ops_[i].stage, ops_[i].microbatch));
    else if (!ended_before(needed, i))
      report(i, ops_[static_cast<std::size_t>(needed)]);
  }

  void lacks(std::size_t i, const Op& needed) {
    faults_.push_back(fmt::format("{} on rank {} needs {}, which that rank does not have", to_string(ops_[i]),
                                  rank_, to_string(needed)));
  }

  bool ended_before(std::int32_t earlier, std::size_t i) const {
    const auto stream = static_cast<std::size_t>(ops_[static_cast<std::size_t>(earlier)].stream);
    return clocks_[i][stream] >= earlier;
  }

  void report(std::size_t i, const Op& needed) {
    faults_.push_back(
        fmt::format("{} on rank {} does not wait for {}", to_string(ops_[i]), rank_, to_string(needed)));
  }

  const Schedule& schedule_;
  const OpIndex& index_;
  const std::vector<int>& rank_of_;
  int rank_;
  const RankOps& ops_;
  std::vector<Clock> clocks_;
  Faults& faults_;
};

}  // namespace

void check_waits(const Schedule& schedule, Faults& faults) {
  const OpIndex index(schedule);
  const std::vector<int> rank_of = ranks_by_stage(schedule);
  for (int rank = 0; rank < schedule.pp; ++rank) WaitCheck(schedule, index, rank_of, rank, faults).run();
}

}  // namespace rehearse
