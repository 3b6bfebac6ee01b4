#include <map>

#include "schedule/passes.h"

namespace rehearse {

namespace {

// A copy to the host and back needs an op to hide behind at each end.
constexpr std::size_t kMinDistance = 3;

using Cell = std::pair<int, std::int32_t>;  // stage and microbatch

class OffloadWalk {
 public:
  explicit OffloadWalk(const RankOps& from) : from_(from), moved_(from.size()) {
    std::map<Cell, std::size_t> forward;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!is_compute(from[i].kind)) continue;
      const Cell cell{from[i].stage, from[i].microbatch};
      const std::size_t turn = compute_.size();
      compute_.push_back(i);
      if (from[i].kind == OpKind::forward) forward[cell] = turn;
      if (from[i].kind != OpKind::backward && from[i].kind != OpKind::backward_input) continue;
      const auto found = forward.find(cell);
      if (found != forward.end() && turn - found->second >= kMinDistance) backward_[found->second] = turn;
    }
    for (const auto& [f, b] : backward_) forward_[b] = f;
  }

  RankOps run() {
    std::size_t turn = 0;
    for (std::size_t i = 0; i < from_.size(); ++i) {
      const bool compute = is_compute(from_[i].kind);
      if (compute) reload(turn + 1);
      std::vector<std::int32_t> waits;
      for (const std::int32_t wait : from_.waits(from_[i]))
        waits.push_back(moved_[static_cast<std::size_t>(wait)]);
      if (compute) add_waits(turn, waits);
      moved_[i] = to_.add(from_[i], waits);
      if (compute) offload(turn++);
    }
    return std::move(to_);
  }

 private:
  // Adds the RELOAD that runs beside the op before `backward`.
  void reload(std::size_t backward) {
    const auto found = forward_.find(backward);
    if (found == forward_.end()) return;
    const Op& op = from_[compute_[backward]];
    reloaded_[backward] = to_.add(make_op(OpKind::reload, op.stage, op.microbatch),
                                  {offloaded_.at(found->second), moved_[compute_[backward - 2]]});
  }

  void offload(std::size_t turn) {
    if (!backward_.contains(turn)) return;
    const std::size_t i = compute_[turn];
    offloaded_[turn] = to_.add(make_op(OpKind::offload, from_[i].stage, from_[i].microbatch), {moved_[i]});
  }

  void add_waits(std::size_t turn, std::vector<std::int32_t>& waits) const {
    if (const auto found = reloaded_.find(turn); found != reloaded_.end()) waits.push_back(found->second);
    if (turn < 2) return;
    if (const auto found = offloaded_.find(turn - 2); found != offloaded_.end())
      waits.push_back(found->second);
  }

  const RankOps& from_;
  std::vector<std::size_t> compute_;               // by turn: index in from_
  std::map<std::size_t, std::size_t> backward_;    // by turn of an offloaded forward: its backward's
  std::map<std::size_t, std::size_t> forward_;     // and the other way round
  std::map<std::size_t, std::int32_t> offloaded_;  // by turn of the forward: its OFFLOAD
  std::map<std::size_t, std::int32_t> reloaded_;   // by turn of the backward: its RELOAD
  std::vector<std::int32_t> moved_;
  RankOps to_;
};

}  // namespace

Schedule add_activation_offload(const Schedule& schedule) {
  Schedule result{schedule.pp, schedule.stages, schedule.microbatches, {}};
  for (const RankOps& ops : schedule.ranks) result.ranks.push_back(OffloadWalk(ops).run());
  return result;
}

}  // namespace rehearse
