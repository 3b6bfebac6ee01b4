#include "run/contended.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cost/collectives.h"
#include "result/shares.h"

namespace rehearse {

namespace {

// Kernels and transfers of an op alternate this often at most. A stage of 80 layers has hundreds of
// collectives an op, and the other flows hardly change from one to the next.
constexpr double kMaxRounds = 8;
// Share of a link's capacity below which a use is negligible.
constexpr double kNegligible = 1e-6;

OpTransfers unpaired_transfers(OpKind kind, const StageTransfers& stage) {
  switch (kind) {
    case OpKind::forward:
      return stage.forward;
    case OpKind::backward_input:
      return stage.backward_input;
    case OpKind::backward_weight:
      return stage.backward_weight;
    case OpKind::backward: {
      OpTransfers both = stage.backward_input;
      return (both += stage.backward_weight) += stage.side_by_side;
    }
    default:
      return {};
  }
}

// The concurrent pass hides part of an op's expert all-to-alls. That part moves beside the op's own kernels,
// as far as these last.
void hide_exchanges(const Op& op, const OpTimes& times, OpTransfers& transfers) {
  const double hidden = hidden_exchange_s(op, times);
  if (!(hidden > 0)) return;
  const TimeParts parts = priced_parts(op, 0, times);
  Transfers& exchanges = transfers[static_cast<std::size_t>(CommGroup::expert)];
  const double share = hidden / (parts.ep + hidden);
  const double moved = exchanges.exposed_s * share, moved_bytes = exchanges.exposed_bytes * share;
  const double beside = std::min(moved, parts.compute + parts.recompute);
  exchanges.exposed_s -= moved;
  exchanges.beside_s += beside;
  exchanges.window_s += beside;
  exchanges.exposed_bytes -= moved_bytes;
  exchanges.beside_bytes += moved_bytes;
}

class ContendedSearch {
 public:
  ContendedSearch(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
                  const std::vector<StageTransfers>& transfers, const OpTimes& times, Links& links)
      : schedule_(schedule),
        tasks_(tasks),
        plan_(plan),
        cluster_(cluster),
        transfers_(transfers),
        times_(times),
        links_(links),
        grid_(plan),
        groups_(plan) {}

  ContendedOps run(const std::vector<Flow>& flows) {
    find_groups();
    if (std::none_of(talks_.begin(), talks_.end(), [](bool talks) { return talks; })) return {};
    inside_.paces.resize(tasks_.instances.size());
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      const OpRef leader = tasks_.leader[task];
      if (is_compute(op_at(leader).kind)) find_paces(leader.instance);
    }
    mark_users(flows);
    for (TaskId task = 0; task < tasks_.size(); ++task) take(task);
    if (inside_.ops.empty()) return {};
    return std::move(inside_);
  }

 private:
  const Op& op_at(OpRef ref) const {
    const Instance& instance = tasks_.instances[static_cast<std::size_t>(ref.instance)];
    return schedule_
        .ranks[static_cast<std::size_t>(instance.pipeline_rank)][static_cast<std::size_t>(ref.op)];
  }

  void find_groups() {
    for (const StageTransfers& stage : transfers_) {
      OpTransfers all = stage.forward;
      (all += stage.backward_input) += stage.backward_weight;
      for (std::size_t group = 0; group < kInnerGroups; ++group)
        talks_[group] = talks_[group] || all[group].exposed_s + all[group].beside_s > 0;
    }
  }

  // The instances whose ops are one task with those of `leader`.
  std::vector<int> members(int leader) const {
    std::vector<int> instances;
    const int first = tasks_.instances[static_cast<std::size_t>(leader)].rank;
    for (const int in_context : grid_.group(first, Axis::cp))
      for (const int rank : grid_.group(in_context, Axis::tp)) instances.push_back(links_.instance_of(rank));
    std::sort(instances.begin(), instances.end());
    instances.erase(std::unique(instances.begin(), instances.end()), instances.end());
    return instances;
  }

  void find_paces(int leader) {
    FlowRates& paces = inside_.paces[static_cast<std::size_t>(leader)];
    if (std::any_of(paces.begin(), paces.end(), [](const auto& of_group) { return !of_group.empty(); }))
      return;
    for (const int instance : members(leader)) {
      for (std::size_t group = 0; group < kInnerGroups; ++group)
        if (talks_[group]) add_paces(group, instance, paces[group]);
    }
  }

  // The same flows as for whole collectives (LoadsBuilder): a GPU's port carries the bytes that its rank
  // sends, a NIC the bytes of its node's members.
  void add_paces(std::size_t index, int instance, std::vector<FlowRate>& paces) {
    const auto group = static_cast<CommGroup>(index);
    const int rank = tasks_.instances[static_cast<std::size_t>(instance)].rank;
    const GroupShape shape = group_shape(cluster_, groups_.ranks(group, rank));
    if (shape.members < 2) return;
    if (shape.nodes == 1) {
      paces.push_back({links_.gpu(instance), links_.gpu_bandwidth()});
      return;
    }
    const bool exchanges =
        group == CommGroup::expert || (group == CommGroup::context && exchanges_contexts());
    const std::vector<FlowShare>& crossings =
        exchanges ? links_.all_to_all(group, instance) : links_.ring(group, instance);
    for (const FlowShare& crossing : crossings)
      paces.push_back({crossing.ends, crossing.carried(0, links_.nic_bandwidth() / shape.per_nic),
                       crossing.carried(1, 0)});
  }

  bool exchanges_contexts() const { return plan_.cp_exchange == ContextExchange::all_to_all; }

  template <typename Visit>
  void each_link(const Endpoints& ends, Visit&& visit) const {
    for (const EndId end : {ends.out, ends.in})
      for (const LinkId link : links_.table().ends()[static_cast<std::size_t>(end)])
        visit(static_cast<std::size_t>(link));
  }

  // Marks the links that ops of more than one leader use.
  void mark_users(const std::vector<Flow>& flows) {
    users_.assign(links_.table().capacity().size(), kNobody);
    for (const Flow& flow : flows)
      each_link(flow.ends, [this](std::size_t link) { users_[link] = kSeveral; });
    for (std::size_t leader = 0; leader < inside_.paces.size(); ++leader) {
      for (const auto& of_group : inside_.paces[leader])
        for (const FlowRate& pace : of_group)
          each_link(pace.ends, [&](std::size_t link) {
            const auto self = static_cast<int>(leader);
            users_[link] = users_[link] == kNobody || users_[link] == self ? self : kSeveral;
          });
    }
    waits_.resize(inside_.paces.size());
    for (std::size_t leader = 0; leader < waits_.size(); ++leader)
      waits_[leader] = may_wait(inside_.paces[leader]);
  }

  bool may_wait(const FlowRates& paces) {
    for (const auto& of_group : paces) {
      if (fullest_s(of_group, 1, 0) > 1 + kNegligible) return true;
      bool meets = std::ranges::any_of(
          of_group, [](const FlowRate& pace) { return pace.times_bytes > 0; });  // may be held up
      for (const FlowRate& pace : of_group)
        each_link(pace.ends, [&](std::size_t link) {
          meets = meets || (users_[link] == kSeveral && pace.bytes_per_s > kNegligible * capacity(link));
        });
      if (meets) return true;
    }
    return false;
  }

  double capacity(std::size_t link) const { return links_.table().capacity()[link]; }

  // Seconds on the links as they are, for transfers that are priced at `seconds`.
  double fullest_s(const std::vector<FlowRate>& paces, double seconds, double bytes) {
    bytes_.resize(links_.table().capacity().size());
    double most = 0;
    if (!(seconds > 0)) return most;
    for (const FlowRate& pace : paces)
      each_link(pace.ends, [&](std::size_t link) {
        bytes_[link] += static_cast<double>(pace.flow(seconds, bytes).bytes);
      });
    for (const FlowRate& pace : paces)
      each_link(pace.ends, [&](std::size_t link) { most = std::max(most, bytes_[link] / capacity(link)); });
    for (const FlowRate& pace : paces) each_link(pace.ends, [&](std::size_t link) { bytes_[link] = 0; });
    return most;
  }

  void take(TaskId task) {
    const OpRef leader = tasks_.leader[task];
    const Op& op = op_at(leader);
    if (!is_compute(op.kind) || !waits_[static_cast<std::size_t>(leader.instance)]) return;
    const auto [found, is_new] =
        known_.try_emplace({leader.instance, op.stage, op.kind, op.parts, op.beside}, -1);
    if (is_new) found->second = add(leader.instance, op);
    if (found->second < 0) return;
    if (inside_.op_of.empty()) inside_.op_of.assign(tasks_.size(), -1);
    inside_.op_of[task] = found->second;
  }

  // Adds a contended op and returns its index; -1 for an op without transfers.
  std::int32_t add(int leader, const Op& op) {
    ContendedOp inner;
    inner.leader = leader;
    if (op.stage >= transfers_.size()) return -1;
    OpTransfers all = unpaired_transfers(op.kind, transfers_[op.stage]);
    hide_exchanges(op, times_, all);
    double calls = 0;
    for (const Transfers& of_group : all) calls += of_group.calls;
    inner.rounds = static_cast<int>(std::clamp(calls / op.parts, 1.0, kMaxRounds));
    const double each = 1.0 / op.parts / inner.rounds;
    for (std::size_t group = 0; group < kInnerGroups; ++group) {
      const std::vector<FlowRate>& paces = inside_.paces[static_cast<std::size_t>(leader)][group];
      if (paces.empty()) continue;
      Transfers& round = inner.round[group];
      round.exposed_s = each * std::max(0.0, all[group].exposed_s);
      round.beside_s = each * all[group].beside_s;
      round.window_s = each * all[group].window_s;
      round.exposed_bytes = each * std::max(0.0, all[group].exposed_bytes);
      round.beside_bytes = each * all[group].beside_bytes;
      inner.priced_s += inner.rounds * (round.exposed_s + round.window_s);
      // Members of the group whose ops are other tasks send meanwhile. So this op does not become shorter
      // than priced, even if its links could carry its own bytes faster.
      inner.alone_s +=
          inner.rounds * (std::max(round.exposed_s, fullest_s(paces, round.exposed_s, round.exposed_bytes)) +
                          std::max(round.window_s, fullest_s(paces, round.beside_s, round.beside_bytes)));
    }
    if (inner.alone_s == 0) return -1;
    inside_.ops.push_back(inner);
    return static_cast<std::int32_t>(inside_.ops.size() - 1);
  }

  static constexpr int kNobody = -1, kSeveral = -2;

  const Schedule& schedule_;
  const Tasks& tasks_;
  const Plan& plan_;
  const Cluster& cluster_;
  const std::vector<StageTransfers>& transfers_;
  const OpTimes& times_;
  Links& links_;
  RankGrid grid_;
  CommGroups groups_;
  std::array<bool, kInnerGroups> talks_{};
  std::vector<int> users_;     // by link: a leader, kNobody, kSeveral
  std::vector<bool> waits_;    // by leader
  std::vector<double> bytes_;  // by link, zero between calls
  std::map<std::tuple<int, std::uint16_t, OpKind, std::uint16_t, std::int16_t>, std::int32_t> known_;
  ContendedOps inside_;
};

}  // namespace

Flow FlowRate::flow(double seconds, double bytes) const {
  const double all = std::ceil(bytes_per_s * seconds + times_bytes * bytes);
  return {ends, static_cast<std::uint64_t>(std::max(1.0, all))};
}

ContendedOps find_contended(const Schedule& schedule, const Tasks& tasks, const Plan& plan,
                            const Cluster& cluster, const std::vector<StageTransfers>& transfers,
                            const OpTimes& times, const std::vector<Flow>& flows, Links& links) {
  return ContendedSearch(schedule, tasks, plan, cluster, transfers, times, links).run(flows);
}

}  // namespace rehearse
