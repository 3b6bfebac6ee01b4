#include "scenario/read_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text_file.h"
#include "plan/stages.h"
#include "schedule/check.h"
#include "schedule/passes.h"
#include "schedule/placement.h"
#include "schedule/text.h"

namespace rehearse {

namespace {

bool splits_backward(const Schedule& order) {
  return std::ranges::any_of(order.ranks, [](const RankOps& ops) {
    return std::ranges::any_of(ops.ops(), [](const Op& op) { return op.kind == OpKind::backward_input; });
  });
}

// Like GPipe: every rank runs all its forwards before its first backward.
bool begins_with_all_forwards(const Schedule& order) {
  return std::ranges::all_of(order.ranks, [](const RankOps& rank) {
    const auto is_forward = [](const Op& op) { return op.kind == OpKind::forward; };
    const auto is_backward = [&](const Op& op) { return is_compute(op.kind) && !is_forward(op); };
    const auto first_backward = std::ranges::find_if(rank.ops(), is_backward);
    return std::none_of(first_backward, rank.ops().end(), is_forward);
  });
}

bool lies_as(const std::vector<int>& ranks, const Plan& plan) {
  for (int stage = 0; stage < static_cast<int>(ranks.size()); ++stage)
    if (ranks[static_cast<std::size_t>(stage)] != pipeline_rank_of(stage, plan)) return false;
  return true;
}

// The known schedule with the same placement of stages on ranks.
ScheduleName nearest_known(const Schedule& order, Plan plan, const std::string& file) {
  const std::vector<int> ranks = ranks_by_stage(order);
  const bool split = splits_backward(order);
  const ScheduleName whole =
      begins_with_all_forwards(order) ? ScheduleName::gpipe : ScheduleName::one_f_one_b;
  std::vector<ScheduleName> candidates = {split ? ScheduleName::zb_h1 : whole};
  if (plan.vpp > 1) candidates = {ScheduleName::interleaved};
  // With one rank both placements match; it cannot interleave.
  if (plan.vpp == 2)
    candidates.insert(plan.pp == 1 ? candidates.begin() : candidates.end(),
                      split ? ScheduleName::zb_v : ScheduleName::dualpipe_v);
  for (const ScheduleName candidate : candidates) {
    plan.schedule = candidate;
    if (lies_as(ranks, plan)) return candidate;
  }
  throw InputError({file, "", "stage s lies on rank s % pp, or stages s and 2 pp - 1 - s on rank s",
                    fmt::format("stages 0 to {} lie on ranks {}", order.stages - 1, fmt::join(ranks, " ")),
                    ""});
}

}  // namespace

bool is_order_file(const std::string& schedule) {
  return schedule.ends_with(".csv") || is_stream(schedule);
}

void read_order(const std::string& file, Experiment& experiment) {
  Schedule order = read_csv(read_text_file(file), file);
  Plan& plan = experiment.plan;
  if (order.stages % order.pp != 0)
    throw InputError({file, "", "all ranks (rows) run equally many stages",
                      fmt::format("{} stages, {} rows", order.stages, order.pp), ""});
  const int pp = std::exchange(plan.pp, order.pp);
  plan.vpp = order.stages / order.pp;
  plan.schedule = nearest_known(order, plan, file);
  plan.pp = pp;
  if (plan.schedule == ScheduleName::interleaved) plan.microbatch_group = order.microbatches;
  experiment.order_name = std::filesystem::path(file).filename().string();
  experiment.order = std::move(order);
}

void require_order(const Experiment& experiment, const std::string& scenario_file) {
  const Schedule& order = *experiment.order;
  const Plan& plan = experiment.plan;
  std::vector<Violation> violations;
  const auto require = [&](bool holds, const char* field, const char* rule, std::string values,
                           std::string nearest) {
    if (!holds)
      violations.push_back(
          {scenario_file, std::string("/plan/") + field, rule, std::move(values), std::move(nearest)});
  };
  require(order.pp == plan.pp, "pp", "the schedule's file has a row for each pipeline rank",
          fmt::format("{} rows, pp = {}", order.pp, plan.pp), fmt::format("pp = {}", order.pp));
  require(order.stages == order.pp * plan.vpp, "vpp", "the schedule's file has vpp stages a row",
          fmt::format("{} stages in {} rows, vpp = {}", order.stages, order.pp, plan.vpp),
          fmt::format("vpp = {}", order.stages / order.pp));
  const std::int64_t replica = std::max<std::int64_t>(1, plan.micro_batch * plan.dp);
  require(order.microbatches == plan.global_batch / replica, "global_batch",
          "the schedule's file has the microbatches of the plan",
          fmt::format("{} in the file, global batch {} makes {}", order.microbatches, plan.global_batch,
                      plan.global_batch / replica),
          fmt::format("global batch {}", order.microbatches * replica));
  if (!violations.empty()) throw InputError(std::move(violations));
  const auto require_none = [&](const std::vector<std::string>& faults) {
    for (const std::string& fault : faults) violations.push_back({experiment.order_name, "", fault, "", ""});
    if (!violations.empty()) throw InputError(std::move(violations));
  };
  require_none(check_computation(order, plan));  // transfers follow from it
  require_none(check_schedule(with_transfers(order, plan), plan));
}

}  // namespace rehearse
