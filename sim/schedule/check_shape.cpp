#include <fmt/core.h>

#include "schedule/checks.h"

namespace rehearse {

namespace {

std::string op_fault(const Op& op, const Schedule& schedule) {
  if (op.stage >= schedule.stages) return fmt::format("there are {} stages", schedule.stages);
  if (op.microbatch < 0 || op.microbatch >= schedule.microbatches)
    return fmt::format("there are {} microbatches", schedule.microbatches);
  if (op.parts == 0 || op.part >= op.parts) return fmt::format("it has {} parts", op.parts);
  return {};
}

}  // namespace

void check_shape(const Schedule& schedule, const Plan& plan, Faults& faults) {
  const auto compare = [&](const char* what, std::int64_t has, std::int64_t wants) {
    if (has != wants) faults.push_back(fmt::format("the schedule has {} {}, the plan {}", has, what, wants));
  };
  compare("pipeline ranks", schedule.pp, plan.pp);
  compare("lists", static_cast<std::int64_t>(schedule.ranks.size()), plan.pp);
  compare("stages", schedule.stages, plan.stages());
  compare("microbatches", schedule.microbatches, plan.microbatches());
  if (!faults.empty()) return;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const Op& op : schedule.ranks[rank].ops())
      if (const std::string fault = op_fault(op, schedule); !fault.empty())
        faults.push_back(fmt::format("rank {} has {}, but {}", rank, to_string(op), fault));
}

OpIndex::OpIndex(const Schedule& schedule)
    : stages_(schedule.stages),
      microbatches_(schedule.microbatches),
      places_(cell(static_cast<OpKind>(kOpKinds), 0, 0)) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const RankOps& ops = schedule.ranks[rank];
    for (std::size_t i = 0; i < ops.size(); ++i)
      places_[cell(ops[i].kind, ops[i].stage, ops[i].microbatch)] = {static_cast<int>(rank),
                                                                     static_cast<std::int32_t>(i)};
  }
}

std::int32_t OpIndex::find(int rank, OpKind kind, int stage, int microbatch) const {
  const Place& place = places_[cell(kind, stage, microbatch)];
  return place.rank == rank ? place.index : -1;
}

std::size_t OpIndex::cell(OpKind kind, int stage, int microbatch) const {
  const std::size_t row =
      static_cast<std::size_t>(kind) * static_cast<std::size_t>(stages_) + static_cast<std::size_t>(stage);
  return row * static_cast<std::size_t>(microbatches_) + static_cast<std::size_t>(microbatch);
}

}  // namespace rehearse
