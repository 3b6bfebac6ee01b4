#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "schedule/passes.h"

namespace rehearse {

namespace {

bool reads_parameters(OpKind kind) {
  return kind == OpKind::forward || kind == OpKind::backward || kind == OpKind::backward_input;
}

// A unit's turn in one compute op.
struct Use {
  std::size_t op = 0;  // index in the list that is copied
  int stage = 0;
  int unit = 0;
  bool gathers = false;
  bool drops = false;
};

// Copies the list of one rank and adds its gathers.
class GatherWalk {
 public:
  GatherWalk(const RankOps& from, const ParameterGather& gather)
      : from_(from),
        gather_(gather),
        ahead_(gather.time >= GatherTime::microbatch ? static_cast<std::size_t>(gather.prefetch)
                                                     : from.size() * most_units()),
        last_reader_(gather.units.size(), -1) {
    for (const int units : gather.units) whole_.emplace_back(static_cast<std::size_t>(units), false);
    held_ = whole_;
    for (std::size_t i = 0; i < from.size(); ++i)
      if (reads_parameters(from[i].kind)) last_reader_[from[i].stage] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < from.size(); ++i) find_uses(i);
    gathered_.assign(uses_.size(), -1);
  }

  RankOps run() {
    gather_until(ahead_);
    moved_.resize(from_.size());
    for (std::size_t i = 0; i < from_.size(); ++i) copy(i);
    return std::move(to_);
  }

 private:
  std::size_t most_units() const {
    return static_cast<std::size_t>(*std::max_element(gather_.units.begin(), gather_.units.end()));
  }

  bool same_op(const Op& a, const Op& b) const {
    return a.kind == b.kind && a.stage == b.stage && a.microbatch == b.microbatch;
  }

  void find_uses(std::size_t i) {
    const Op& op = from_[i];
    if (!reads_parameters(op.kind)) return;
    const int units = gather_.units[op.stage];
    if (op.parts != 1 && op.parts != units)
      throw std::logic_error(fmt::format("{} has {} parts for {} units", to_string(op), op.parts, units));
    const int first = op.parts == 1 ? 0 : op.part;
    const int end = op.parts == 1 ? units : op.part + 1;
    const bool drops = drops_after(op);
    for (int part = first; part < end; ++part) {
      const int unit = op.kind == OpKind::forward ? part : units - 1 - part;
      const bool gathers = !held_[op.stage][static_cast<std::size_t>(unit)];
      held_[op.stage][static_cast<std::size_t>(unit)] = !drops;
      if (gathers || drops) uses_.push_back({i, op.stage, unit, gathers, drops});
    }
  }

  bool drops_after(const Op& op) const {
    switch (gather_.time) {
      case GatherTime::each_use:
        return true;
      case GatherTime::microbatch:
        return op.kind != OpKind::forward;
      case GatherTime::iteration:
        return same_op(op, from_[static_cast<std::size_t>(last_reader_[op.stage])]);
      default:
        return false;
    }
  }

  // A unit that is still whole is gathered again only after it was dropped.
  void gather_until(std::size_t last) {
    for (; next_gather_ < uses_.size() && next_gather_ <= last; ++next_gather_) {
      const Use& use = uses_[next_gather_];
      if (!use.gathers) continue;
      auto whole = whole_[static_cast<std::size_t>(use.stage)].begin() + use.unit;
      if (*whole) return;
      *whole = true;
      gathered_[next_gather_] = to_.add(unit_op(OpKind::unshard, use), {reduction_});
    }
  }

  Op unit_op(OpKind kind, const Use& use) const {
    Op op = make_op(kind, use.stage);
    op.part = static_cast<std::uint16_t>(use.unit);
    op.parts = static_cast<std::uint16_t>(gather_.units[static_cast<std::size_t>(use.stage)]);
    return op;
  }

  void copy(std::size_t i) {
    Op op = from_[i];
    std::vector<std::int32_t> waits;
    for (const std::int32_t wait : from_.waits(op)) waits.push_back(moved_[static_cast<std::size_t>(wait)]);
    if (next_use_ == uses_.size() || uses_[next_use_].op != i) {
      moved_[i] = to_.add(op, waits);
      if (gather_.after_reductions && op.stream == Stream::gradient) reduction_ = moved_[i];
      return;
    }
    const bool split = op.parts == 1;
    for (int part = 0; next_use_ < uses_.size() && uses_[next_use_].op == i; ++next_use_, ++part) {
      if (split) {
        op.part = static_cast<std::uint16_t>(part);
        op.parts = static_cast<std::uint16_t>(gather_.units[op.stage]);
      }
      if (gather_.after_reductions) gather_until(next_use_ + ahead_);
      waits.push_back(gathered_[next_use_]);
      moved_[i] = to_.add(op, waits);
      waits.clear();  // the other parts follow on the same stream
      if (uses_[next_use_].drops) drop(uses_[next_use_], moved_[i]);
      if (!gather_.after_reductions) gather_until(next_use_ + 1 + ahead_);
    }
  }

  void drop(const Use& use, std::int32_t after) {
    to_.add(unit_op(OpKind::reshard, use), {after});
    whole_[static_cast<std::size_t>(use.stage)][static_cast<std::size_t>(use.unit)] = false;
  }

  const RankOps& from_;
  const ParameterGather& gather_;
  std::size_t ahead_;                      // number of uses whose gathers are issued early
  std::vector<std::int32_t> last_reader_;  // by stage: index of its last op that reads parameters
  std::vector<std::vector<bool>> held_;    // by stage and unit: whole after all uses found so far
  std::vector<std::vector<bool>> whole_;   // the same after all uses copied so far
  std::vector<Use> uses_;
  std::vector<std::int32_t> gathered_;  // by use: its UNSHARD
  std::vector<std::int32_t> moved_;     // by op of from_: its last part in to_
  std::int32_t reduction_ = -1;         // in to_: the one that gathers wait for
  std::size_t next_gather_ = 0;
  std::size_t next_use_ = 0;
  RankOps to_;
};

// Gathers each stage's parameters once STEP, or their copy from the host, has ended.
RankOps gather_after_step(const RankOps& from) {
  RankOps to = from;
  std::vector<std::pair<int, std::int32_t>> ready;
  std::int32_t step = -1;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (from[i].kind == OpKind::step) step = index;
    if (from[i].kind == OpKind::reload_param) ready.emplace_back(from[i].stage, index);
  }
  if (step < 0) return to;
  if (ready.empty()) {
    std::vector<int> stages;
    for (const Op& op : from.ops())
      if (completes_gradient(op.kind) && std::ranges::find(stages, op.stage) == stages.end())
        stages.push_back(op.stage);
    for (const int stage : stages) ready.emplace_back(stage, step);
  }
  for (const auto& [stage, after] : ready) to.add(make_op(OpKind::unshard, stage), {after});
  return to;
}

}  // namespace

Schedule add_parameter_gather(const Schedule& schedule, const ParameterGather& gather) {
  if (gather.units.size() != static_cast<std::size_t>(schedule.stages))
    throw std::logic_error(fmt::format("{} unit counts for {} stages", gather.units.size(), schedule.stages));
  Schedule result{schedule.pp, schedule.stages, schedule.microbatches, {}};
  for (const RankOps& ops : schedule.ranks)
    result.ranks.push_back(gather.time == GatherTime::after_step ? gather_after_step(ops)
                                                                 : GatherWalk(ops, gather).run());
  return result;
}

}  // namespace rehearse
