#include <fmt/core.h>

#include "schedule/checks.h"

namespace rehearse {

namespace {

constexpr std::size_t kComputeKinds = 4;

struct Seen {
  int times = 0;
  int next_part = 0;
  std::size_t at = 0;  // position in the rank's list
};

struct Cell {
  int rank = -1;
  Seen seen[kComputeKinds];  // by OpKind

  const Seen& of(OpKind kind) const { return seen[static_cast<std::size_t>(kind)]; }
};

std::string name(OpKind kind, int stage, int microbatch) {
  return to_string(make_op(kind, stage, microbatch));
}

void count_part(const Op& op, int rank, Seen& seen, Faults& faults) {
  if (op.part != seen.next_part)
    faults.push_back(fmt::format("rank {} has {} where part {} of {} is due", rank, to_string(op),
                                 seen.next_part, op.parts));
  seen.next_part = (op.part + 1) % op.parts;
  if (seen.next_part == 0) ++seen.times;
}

void count(const Op& op, int rank, std::size_t at, Cell& cell, Faults& faults) {
  if (cell.rank < 0) cell.rank = rank;
  if (cell.rank != rank)
    faults.push_back(fmt::format("{} runs on rank {}, but stage {} and microbatch {} belong to rank {}",
                                 to_string(op), rank, op.stage, op.microbatch, cell.rank));
  Seen& seen = cell.seen[static_cast<std::size_t>(op.kind)];
  count_part(op, rank, seen, faults);
  seen.at = at;
}

void check_times(OpKind kind, int stage, int microbatch, const Cell& cell, Faults& faults) {
  const Seen& seen = cell.of(kind);
  if (seen.times == 0) faults.push_back(fmt::format("{} is missing", name(kind, stage, microbatch)));
  if (seen.times > 1)
    faults.push_back(
        fmt::format("rank {} has {} {} times", cell.rank, name(kind, stage, microbatch), seen.times));
  if (seen.next_part != 0)
    faults.push_back(
        fmt::format("{} ends before its part {}", name(kind, stage, microbatch), seen.next_part));
}

void check_order(OpKind first, OpKind second, int stage, int microbatch, const Cell& cell, Faults& faults) {
  if (cell.of(first).times == 0 || cell.of(second).times == 0) return;
  if (cell.of(first).at < cell.of(second).at) return;
  faults.push_back(fmt::format("rank {} has {} before {}", cell.rank, name(second, stage, microbatch),
                               name(first, stage, microbatch)));
}

void check_cell(int stage, int microbatch, const Cell& cell, Faults& faults) {
  const bool split = cell.of(OpKind::backward_input).times + cell.of(OpKind::backward_weight).times > 0;
  const bool whole = cell.of(OpKind::backward).times > 0;
  check_times(OpKind::forward, stage, microbatch, cell, faults);
  if (whole || !split) check_times(OpKind::backward, stage, microbatch, cell, faults);
  if (whole && split)
    faults.push_back(fmt::format("{} appears together with I or W of the same microbatch",
                                 name(OpKind::backward, stage, microbatch)));
  if (split && !whole) {
    check_times(OpKind::backward_input, stage, microbatch, cell, faults);
    check_times(OpKind::backward_weight, stage, microbatch, cell, faults);
  }
  check_order(OpKind::forward, OpKind::backward, stage, microbatch, cell, faults);
  check_order(OpKind::forward, OpKind::backward_input, stage, microbatch, cell, faults);
  check_order(OpKind::backward_input, OpKind::backward_weight, stage, microbatch, cell, faults);
}

void check_one_rank_per_stage(const Schedule& schedule, const std::vector<Cell>& cells, Faults& faults) {
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const auto first = cells.begin() + std::ptrdiff_t{stage} * schedule.microbatches;
    for (int i = 1; i < schedule.microbatches; ++i) {
      if (first[i].rank < 0 || first[0].rank < 0 || first[i].rank == first[0].rank) continue;
      faults.push_back(fmt::format("stage {} runs on rank {} and, for microbatch {}, on rank {}", stage,
                                   first[0].rank, i, first[i].rank));
      break;
    }
  }
}

// Either no stage's gradients are reduced, or those of every stage are: once, or after every microbatch.
void check_reductions(const Schedule& schedule, Faults& faults) {
  std::vector<Seen> stages(static_cast<std::size_t>(schedule.stages));
  bool any = false;
  for (int rank = 0; rank < schedule.pp; ++rank) {
    for (const Op& op : schedule.ranks[static_cast<std::size_t>(rank)].ops()) {
      if (op.kind != OpKind::reduce_grad) continue;
      count_part(op, rank, stages[op.stage], faults);
      any = true;
    }
  }
  for (int stage = 0; any && stage < schedule.stages; ++stage) {
    const Seen& seen = stages[static_cast<std::size_t>(stage)];
    if ((seen.times == 1 || seen.times == schedule.microbatches) && seen.next_part == 0) continue;
    faults.push_back(fmt::format("{} is there {} times, not once{}",
                                 to_string(make_op(OpKind::reduce_grad, stage)), seen.times,
                                 seen.times > 1 ? " and not once per microbatch" : ""));
  }
}

}  // namespace

void check_counts(const Schedule& schedule, Faults& faults) {
  std::vector<Cell> cells(static_cast<std::size_t>(schedule.stages) *
                          static_cast<std::size_t>(schedule.microbatches));
  const auto cell = [&](int stage, int microbatch) -> Cell& {
    return cells[static_cast<std::size_t>(stage) * static_cast<std::size_t>(schedule.microbatches) +
                 static_cast<std::size_t>(microbatch)];
  };
  for (int rank = 0; rank < schedule.pp; ++rank) {
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (is_compute(ops[i].kind)) count(ops[i], rank, i, cell(ops[i].stage, ops[i].microbatch), faults);
  }
  for (int stage = 0; stage < schedule.stages; ++stage)
    for (int i = 0; i < schedule.microbatches; ++i) check_cell(stage, i, cell(stage, i), faults);
  check_one_rank_per_stage(schedule, cells, faults);
  check_reductions(schedule, faults);
}

}  // namespace rehearse
