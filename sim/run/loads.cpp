#include "run/loads.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cost/collectives.h"
#include "cost/contention.h"
#include "cost/offload.h"
#include "plan/sharding.h"
#include "result/shares.h"

namespace rehearse {

namespace {

// Builds the loads task by task; what repeats (the way between two instances, a group's shape) is found once.
class Loading {
 public:
  Loading(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
          const Profile& profile, const MessageSizes& sizes, const Links& links)
      : schedule_(schedule),
        tasks_(tasks),
        plan_(plan),
        grid_(plan),
        experts_(RankGrid::of_experts(plan)),
        folded_(static_cast<int>(tasks.instances.size()) != grid_.size()),
        cluster_(cluster),
        profile_(profile),
        sizes_(sizes),
        links_(links) {}

  Loads run(const OpTimes& times) {
    loads_.capacity = links_.capacity;
    loads_.fixed_s.resize(tasks_.size());
    loads_.transfer_s.resize(tasks_.size());
    loads_.taken.resize(tasks_.size());
    loads_.first_flow.reserve(tasks_.size() + 1);
    loads_.first_flow.push_back(0);
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      const OpRef leader = tasks_.leader[task];
      const Op& op = op_at(leader);
      if (is_send(op.kind)) {
        send(task, leader.instance, tasks_.peer[task].instance);
      } else if (op.stream == Stream::gradient || op.kind == OpKind::unshard) {
        collective(task, leader.instance, op);
      } else if (is_host_copy(op.kind)) {
        loads_.fixed_s[task] = host_copy_s(cluster_, copied_bytes(op));
      } else {
        loads_.fixed_s[task] =
            priced_parts(op, rank_of(leader.instance).pipeline_rank, times).total() / op.parts;
      }
      loads_.first_flow.push_back(static_cast<std::uint32_t>(loads_.flows.size()));
    }
    return std::move(loads_);
  }

 private:
  // The way of a message, found once for each pair of instances.
  struct Way {
    CommunicationTime time;  // of one boundary message
    Flow flow;
    double transfer_s = 0;
  };

  const Instance& rank_of(int instance) const { return tasks_.instances[static_cast<std::size_t>(instance)]; }

  const Op& op_at(OpRef ref) const {
    return schedule_.ranks[static_cast<std::size_t>(rank_of(ref.instance).pipeline_rank)]
                          [static_cast<std::size_t>(ref.op)];
  }

  double capacity(const Flow& flow) const {
    return std::min(loads_.capacity[static_cast<std::size_t>(flow.out)],
                    loads_.capacity[static_cast<std::size_t>(flow.in)]);
  }

  // Bytes are whole, at least one where there are any, so that both engines count the same ones.
  void add_flow(TaskId task, Flow flow, double seconds) {
    flow.bytes = static_cast<std::uint64_t>(std::ceil(seconds * capacity(flow)));
    if (flow.bytes == 0) return;
    loads_.transfer_s[task] =
        std::max(loads_.transfer_s[task], static_cast<double>(flow.bytes) / capacity(flow));
    loads_.flows.push_back(flow);
  }

  void send(TaskId task, int from, int to) {
    const auto [found, is_new] = ways_.try_emplace({from, to});
    Way& way = found->second;
    if (is_new) way = way_between(from, to);
    loads_.fixed_s[task] = way.time.latency_s;
    if (way.time.extrapolated) loads_.extrapolated_s += way.time.total();
    add_flow(task, way.flow, way.transfer_s);
  }

  Way way_between(int from, int to) const {
    const auto a = static_cast<std::size_t>(from);
    const auto b = static_cast<std::size_t>(to);
    const bool crosses = crosses_nodes(tasks_, grid_, cluster_, from, to);
    Way way;
    way.time = send_time(profile_, cluster_, sizes_.boundary_bytes, crosses);
    way.flow =
        crosses ? Flow{links_.nic[a].out, links_.nic[b].in, 0} : Flow{links_.gpu[a].out, links_.gpu[b].in, 0};
    way.transfer_s = way.time.transfer_s * (crosses ? std::max(links_.nic_share[a], links_.nic_share[b]) : 1);
    return way;
  }

  // Bytes that an op moves of its stage's, as they lie on one rank when gathered.
  struct Moved {
    double dense = 0;
    double experts = 0;
  };

  // The op's share of what lies in the units of its stage.
  static double share_of(const Op& op, const std::vector<std::vector<double>>& units) {
    if (op.parts == 1 || op.stage >= units.size() || units[op.stage].size() != op.parts)
      return 1.0 / op.parts;
    const bool in_model_order = op.kind == OpKind::unshard;
    return units[op.stage][in_model_order ? op.part : std::size_t{op.parts} - 1 - op.part];
  }

  Moved moved(const Op& op, const std::vector<double>& dense, const std::vector<double>& experts) const {
    return {dense[op.stage] * share_of(op, sizes_.units),
            op.stage < experts.size() ? experts[op.stage] * share_of(op, sizes_.expert_units) : 0};
  }
  Moved gradients(const Op& op) const {
    return moved(op, sizes_.gradient_bytes, sizes_.expert_gradient_bytes);
  }
  Moved parameters(const Op& op) const {
    return moved(op, sizes_.parameter_bytes, sizes_.expert_parameter_bytes);
  }

  double copied_bytes(const Op& op) const {
    if (has_microbatch(op.kind)) return sizes_.saved_bytes[op.stage];
    const Moved bytes = op.kind == OpKind::offload_grad ? gradients(op) : parameters(op);
    return bytes.dense / shard_size(plan_) + bytes.experts / expert_shard_size(plan_);
  }

  // A collective over `group`, global ranks of which one is the leader's.
  struct Exchange {
    CommunicationTime time;
    GroupShape shape;
    bool crosses() const { return shape.nodes > 1; }
  };

  Exchange exchange(CollectiveOp op, const std::vector<int>& group, double bytes) const {
    const GroupShape shape = group_shape(cluster_, group);
    return {collective_time(profile_, cluster_, op, bytes, shape), shape};
  }

  void collective(TaskId task, int leader, const Op& op) {
    const int rank = rank_of(leader).rank;
    switch (op.kind) {
      case OpKind::unshard:
        return over_replicas(task, leader, CollectiveOp::all_gather, parameters(op));
      case OpKind::reduce_grad:
        return over_replicas(task, leader,
                             plan_.zero > 0 ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                             gradients(op));
      case OpKind::reduce_replicas: {
        const std::vector<int> group = replica_group(grid_, plan_, rank);
        const Moved bytes = gradients(op);
        return load(
            task, members(leader, group),
            {exchange(CollectiveOp::all_reduce, group, (bytes.dense + bytes.experts) / shard_size(plan_))});
      }
      default:
        return reduce_tied(task, leader);
    }
  }

  // Dense layers among all that hold the same shards, experts among the ranks with the same experts, one
  // after the other.
  void over_replicas(TaskId task, int leader, CollectiveOp op, const Moved& bytes) {
    const int rank = rank_of(leader).rank;
    const std::vector<int> group = shard_group(grid_, plan_, rank);
    const bool one_group = plan_.edp() == plan_.dp * plan_.cp;
    std::vector<Exchange> exchanges = {
        exchange(op, group, one_group ? bytes.dense + bytes.experts : bytes.dense)};
    if (bytes.experts > 0 && !one_group)
      exchanges.push_back(exchange(op, experts_.group(rank, Axis::dp), bytes.experts));
    load(task, members(leader, group), exchanges);
  }

  void reduce_tied(TaskId task, int leader) {
    const std::vector<int> stages = grid_.group(rank_of(leader).rank, Axis::pp);
    const std::vector<int> group = {stages.front(), stages.back()};
    load(task, members(leader, group), {exchange(CollectiveOp::all_reduce, group, sizes_.tied_bytes)});
  }

  // `instances`: those whose ops form the task.
  void load(TaskId task, const std::vector<int>& instances, const std::vector<Exchange>& exchanges) {
    double on_nics = 0;
    for (const Exchange& each : exchanges) {
      loads_.fixed_s[task] += each.time.latency_s;
      if (each.time.extrapolated) loads_.extrapolated_s += each.time.total();
      if (each.crosses()) on_nics += each.time.transfer_s;
      loads_.taken[task] = std::max(loads_.taken[task], share_taken(profile_, cluster_, each.shape));
    }
    for (const int instance : instances) {
      const auto i = static_cast<std::size_t>(instance);
      double gpu_s = 0, nic_s = 0;
      for (const Exchange& each : exchanges) {
        // A folded instance carries the load of all its peers on the NIC; unfolded, the members that share
        // one split it.
        const double share = (folded_ ? links_.nic_share[i] : 1) / each.shape.per_nic;
        (each.crosses() ? nic_s : gpu_s) += each.time.transfer_s * (each.crosses() ? share : 1);
      }
      add_flow(task, {links_.gpu[i].out, links_.gpu[i].in, 0}, gpu_s);
      add_flow(task, {links_.nic[i].out, links_.nic[i].in, 0}, nic_s);
    }
    if (!folded_) loads_.transfer_s[task] = std::max(loads_.transfer_s[task], on_nics);
  }

  // Folded, ranks of one pipeline coordinate share an instance.
  std::vector<int> members(int leader, const std::vector<int>& group) const {
    if (!folded_) return group;
    constexpr auto pp = static_cast<std::size_t>(Axis::pp);
    const int last = grid_.coordinates(group.back())[pp];
    if (grid_.coordinates(group.front())[pp] == last) return {leader};
    return {leader, last};
  }

  const Schedule& schedule_;
  const Tasks& tasks_;
  const Plan& plan_;
  RankGrid grid_;
  RankGrid experts_;
  bool folded_;
  const Cluster& cluster_;
  const Profile& profile_;
  const MessageSizes& sizes_;
  const Links& links_;
  std::map<std::pair<int, int>, Way> ways_;
  Loads loads_;
};

}  // namespace

Loads make_loads(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
                 const Profile& profile, const OpTimes& times, const MessageSizes& sizes,
                 const Links& links) {
  return Loading(schedule, tasks, plan, cluster, profile, sizes, links).run(times);
}

}  // namespace rehearse
