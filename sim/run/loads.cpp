#include "run/loads.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "cost/collectives.h"
#include "cost/contention.h"
#include "cost/lists.h"
#include "cost/offload.h"
#include "plan/comm_group.h"
#include "plan/sharding.h"
#include "result/shares.h"
#include "run/transfer_alone.h"
#include "schedule/exchanged_weights.h"

namespace rehearse {

namespace {

// Builds the loads task by task; what repeats (the way between two instances, a group's shape) is found once.
class Loading {
 public:
  Loading(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
          const Profile& profile, const MessageSizes& sizes, const Conditions& conditions,
          const StageNodes& nodes)
      : schedule_(schedule),
        tasks_(tasks),
        plan_(plan),
        grid_(plan),
        experts_(RankGrid::of_experts(plan)),
        cluster_(cluster),
        profile_(profile),
        sizes_(sizes),
        conditions_(conditions),
        nodes_(nodes),
        links_(tasks, plan, cluster, conditions) {}

  Loads run(const OpTimes& times) {
    find_speeds();
    loads_.fixed_s.resize(tasks_.size());
    loads_.transfer_s.resize(tasks_.size());
    loads_.taken.resize(tasks_.size());
    loads_.waits_s.resize(tasks_.size());
    taken_.resize(tasks_.size());
    loads_.first_flow.reserve(tasks_.size() + 1);
    loads_.first_flow.push_back(0);
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      const OpRef leader = tasks_.leader[task];
      const Op& op = op_at(leader);
      if (is_send(op.kind)) {
        send(task, leader.instance, tasks_.peer[task].instance);
      } else if (op.stream == Stream::gradient || op.kind == OpKind::unshard) {
        collective(task, leader);
      } else if (is_host_copy(op.kind)) {
        loads_.fixed_s[task] =
            host_copy_s(profile_of(leader.instance), cluster_of(leader.instance), copied_bytes(op));
      } else {
        compute(task, leader.instance, op, times);
      }
      loads_.first_flow.push_back(static_cast<std::uint32_t>(loads_.flows.size()));
    }
    loads_.inside =
        find_inside(schedule_, tasks_, plan_, cluster_, sizes_.inside, times, loads_.flows, links_);
    loads_.capacity = links_.table().capacity();
    loads_.ends = links_.table().ends();
    loads_.fabric = links_.table().fabric_links();
    find_transfer_times();
    return std::move(loads_);
  }

 private:
  // The way of a message, found once for each pair of instances.
  struct Way {
    CommunicationTime time;  // of one boundary message
    bool crosses = false;
    std::vector<Crossing> crossings;
  };

  // A collective's ranks, found once for each leader: their shape and the instances whose ops form the task.
  struct Group {
    GroupShape shape;
    double taken = 0;  // as share_taken()
    std::vector<int> instances;
  };

  void find_speeds() {
    for (const Instance& instance : tasks_.instances)
      speeds_.push_back(speed_of(plan_, conditions_, instance.rank));
  }

  // A slow GPU stretches its kernels; its peers wait for it, and what they say to each other is no slower.
  void compute(TaskId task, int instance, const Op& op, const OpTimes& times) {
    const TimeParts parts = priced_parts(op, rank_of(instance).pipeline_rank, times);
    loads_.fixed_s[task] = parts.total() / op.parts;
    loads_.waits_s[task] = std::max(0.0, parts.waits / op.parts);
    const double kernels = parts.compute + parts.recompute + parts.optimizer - parts.waits;
    loads_.slow(task, (kernels / speeds_[static_cast<std::size_t>(instance)] - kernels) / op.parts);
  }

  const Instance& rank_of(int instance) const { return tasks_.instances[static_cast<std::size_t>(instance)]; }

  // What prices the messages that an instance begins.
  const Cluster& cluster_of(int instance) const {
    return nodes_.empty() ? cluster_ : nodes_.of_rank(rank_of(instance).pipeline_rank).cluster;
  }
  const Profile& profile_of(int instance) const {
    return nodes_.empty() ? profile_ : nodes_.of_rank(rank_of(instance).pipeline_rank).profile;
  }

  const RankOps& ops_of(OpRef ref) const {
    return schedule_.ranks[static_cast<std::size_t>(rank_of(ref.instance).pipeline_rank)];
  }
  const Op& op_at(OpRef ref) const { return ops_of(ref)[static_cast<std::size_t>(ref.op)]; }

  // Bytes are whole, at least one where there are any, so that both engines count the same ones.
  void add_flow(const FlowEnds& ends, double bytes) {
    const double whole = std::ceil(bytes);
    if (whole > 0) loads_.flows.push_back({ends, static_cast<std::uint64_t>(whole)});
  }

  void send(TaskId task, int from, int to) {
    const auto [found, is_new] = ways_.try_emplace({from, to});
    Way& way = found->second;
    if (is_new) way = way_between(from, to);
    loads_.fixed_s[task] = way.time.latency_s;
    if (way.time.extrapolated) loads_.extrapolated_s += way.time.total();
    const double counted = way.time.transfer_s * rate(way.crosses);
    for (const Crossing& crossing : way.crossings)
      add_flow(crossing.ends, crossing.carried(sizes_.boundary_bytes, counted));
  }

  // Seconds of a message alone on its port are worth so many bytes: what the protocol adds counts as bytes.
  double rate(bool crosses) const { return crosses ? links_.nic_bandwidth() : links_.gpu_bandwidth(); }

  Way way_between(int from, int to) {
    const bool crosses = links_.crosses_nodes(from, to);
    return {send_time(profile_of(from), cluster_of(from), sizes_.boundary_bytes, crosses), crosses,
            links_.message(from, to)};
  }

  void find_transfer_times() {
    std::vector<double> bytes(loads_.capacity.size(), 0);
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      loads_.transfer_s[task] = transfer_alone_s(loads_, task, bytes);
      if (const InnerOp* op = loads_.inside.of(task)) {
        loads_.fixed_s[task] -= op->priced_s;
        loads_.transfer_s[task] = op->alone_s;
      }
      loads_.taken[task] = share_lost(taken_[task], loads_.alone_s(task));
    }
  }

  // Bytes that an op moves of its stage's, as they lie on one rank when gathered.
  struct Moved {
    double dense = 0;
    double experts = 0;
    double all() const { return dense + experts; }
  };

  // The op's share of what lies in the units of its stage.
  static double share_of(const Op& op, const std::vector<std::vector<double>>& units) {
    if (op.parts == 1 || op.stage >= units.size() || units[op.stage].size() != op.parts)
      return 1.0 / op.parts;
    return units[op.stage][static_cast<std::size_t>(unit_of(op))];
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
    return bytes.dense * stepped_share(op.stage) + bytes.experts / expert_shard_size(plan_);
  }

  // Of what a stage has outside experts, the part that the rank steps which steps most.
  double stepped_share(std::size_t stage) const {
    if (sizes_.owned_bytes.empty()) return 1.0 / shard_size(plan_);
    return std::ranges::max(sizes_.owned_bytes[stage]) / std::max(1.0, sizes_.parameter_bytes[stage]);
  }

  // One collective of a task: which rings, how long alone.
  struct Exchange {
    Ring ring = Ring::shards;
    const Group* group = nullptr;
    CommunicationTime time;
    double far_bytes = 0;  // of a member
    Taken taken;           // from kernels beside it
    bool crosses() const { return group->shape.nodes > 1; }
    void repeat(double times) {
      for (double* part : {&time.latency_s, &time.transfer_s, &far_bytes, &taken.memory_s}) *part *= times;
    }
  };

  std::vector<int> ranks_of(Ring ring, int rank) const {
    switch (ring) {
      case Ring::shards:
        return CommGroups(plan_).ranks(CommGroup::shards, rank);
      case Ring::shard_replicas:
        return CommGroups(plan_).ranks(CommGroup::shard_replicas, rank);
      case Ring::experts:
        return experts_.group(rank, Axis::dp);
      case Ring::tied: {
        const std::vector<int> stages = grid_.group(rank, Axis::pp);
        return {stages.front(), stages.back()};
      }
      default:
        return {};
    }
  }

  const Group& group(Ring ring, int leader) {
    const auto [found, is_new] = groups_.try_emplace({ring, leader});
    Group& group = found->second;
    if (!is_new) return group;
    const std::vector<int> ranks = ranks_of(ring, rank_of(leader).rank);
    group.shape = group_shape(cluster_, ranks);
    group.taken = share_taken(profile_of(leader), cluster_of(leader), group.shape);
    for (const int rank : ranks) {
      if (const int instance = links_.instance_of(rank); instance >= 0) group.instances.push_back(instance);
    }
    std::sort(group.instances.begin(), group.instances.end());
    const auto repeated = std::unique(group.instances.begin(), group.instances.end());
    group.instances.erase(repeated, group.instances.end());
    return group;
  }

  Exchange exchange(Ring ring, CollectiveOp op, int leader, double bytes) {
    const Group& of = group(ring, leader);
    const Profile& profile = profile_of(leader);
    const Cluster& cluster = cluster_of(leader);
    const CommunicationTime time = collective_time(profile, cluster, op, bytes, of.shape);
    return {ring, &of, time, far_bytes(op, bytes, of.shape),
            taken_by(profile, cluster.gpu, of.shape, op, bytes, of.taken)};
  }

  void collective(TaskId task, OpRef ref) {
    const int leader = ref.instance;
    const Op& op = op_at(ref);
    const auto alone = [&](Ring ring, CollectiveOp what, double bytes) {
      load(task, {exchange(ring, what, leader, bytes)});
    };
    switch (op.kind) {
      case OpKind::unshard:
        return over_replicas(task, ref, CollectiveOp::all_gather, parameters(op));
      case OpKind::reduce_grad:
        loads_.fixed_s[task] += bucket_copies_s(ref, gradients(op).all());
        return over_replicas(
            task, ref, scatters_gradients(plan_) ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
            gradients(op));
      case OpKind::reduce_replicas: {
        const Moved bytes = gradients(op);
        return alone(Ring::shard_replicas, CollectiveOp::all_reduce, bytes.all() / shard_size(plan_));
      }
      default:
        return alone(Ring::tied, CollectiveOp::all_reduce, sizes_.tied_bytes);
    }
  }

  double bucket_copies_s(OpRef ref, double bytes) const {
    const double passes = bucket_copies(plan_);
    return passes > 0 ? passes * bytes / cluster_of(ref.instance).gpu.memory_bandwidth : 0;
  }

  // Dense layers among all that hold the same shards, experts among the ranks with the same experts, one
  // after the other.
  void over_replicas(TaskId task, OpRef ref, CollectiveOp what, const Moved& bytes) {
    const int leader = ref.instance;
    const bool one_group = plan_.edp() == plan_.dp * plan_.cp;
    const bool together = one_group && !are_owned(ref);
    std::vector<Exchange> exchanges = {dense(ref, what, together ? bytes.all() : bytes.dense)};
    if (bytes.experts > 0 && !together)
      exchanges.push_back(exchange(one_group ? Ring::shards : Ring::experts, what, leader, bytes.experts));
    load(task, exchanges);
  }

  Exchange dense(OpRef ref, CollectiveOp what, double bytes) {
    if (!sizes_.weights.empty()) return by_weights(ref, what, bytes);
    if (are_owned(ref)) return broadcasts(ref);
    return exchange(Ring::shards, what, ref.instance, bytes);
  }

  // Parameters outside experts that their owners broadcast.
  bool are_owned(OpRef ref) const {
    return !sizes_.owned_bytes.empty() && op_at(ref).kind == OpKind::unshard;
  }

  // One after the other, each owner's own. No two begin at the same rank: each goes round the ring alone.
  Exchange broadcasts(OpRef ref) {
    const std::vector<double>& owned = sizes_.owned_bytes[op_at(ref).stage];
    const double most = std::ranges::max(owned);
    Exchange all = exchange(Ring::shards, CollectiveOp::broadcast, ref.instance, most);
    all.repeat(std::accumulate(owned.begin(), owned.end(), 0.0) / std::max(1.0, most));
    all.time = {};
    std::map<double, CommunicationTime> known;
    for (const double bytes : owned) {
      if (bytes == 0) continue;
      const auto [time, is_new] = known.try_emplace(bytes);
      if (is_new)
        time->second =
            lone_broadcast_time(profile_of(ref.instance), cluster_of(ref.instance), bytes, all.group->shape);
      all.time += time->second;
    }
    return all;
  }

  // One after the other, each of an even part of the bytes.
  Exchange by_weights(OpRef ref, CollectiveOp what, double bytes) {
    const double each = bytes / exchanged_parts(op_at(ref), sizes_.weights);
    const int times = weight_exchanges(ops_of(ref), static_cast<std::size_t>(ref.op), sizes_.weights);
    Exchange all = exchange(Ring::shards, what, ref.instance, each);
    if (op_at(ref).kind == OpKind::unshard)
      all.time.latency_s +=
          list_copies_s(profile_of(ref.instance), cluster_of(ref.instance), shard_size(plan_), each);
    all.repeat(times);
    return all;
  }

  // The first exchange's instances form the task. Each puts its bytes on its GPU's port and, across nodes,
  // its part of what its node sends through the NIC; exchanges over the same links are one flow.
  void load(TaskId task, const std::vector<Exchange>& exchanges) {
    for (const Exchange& each : exchanges) {
      loads_.fixed_s[task] += each.time.latency_s;
      if (each.time.extrapolated) loads_.extrapolated_s += each.time.total();
      taken_[task] += each.taken;
    }
    for (const int instance : exchanges.front().group->instances) {
      double near_bytes = 0;
      far_.clear();
      for (const Exchange& each : exchanges) {
        const double bytes = each.time.transfer_s * rate(each.crosses());
        if (!each.crosses()) {
          near_bytes += bytes;
          continue;
        }
        const GroupOf ranks = [this, &each](int rank) { return ranks_of(each.ring, rank); };
        for (const Crossing& crossing : links_.ring(each.ring, instance, ranks))
          put(crossing.ends, crossing.carried(each.far_bytes, bytes / each.group->shape.per_nic));
      }
      add_flow(links_.gpu(instance), near_bytes);
      for (const auto& [ends, bytes] : far_) add_flow(ends, bytes);
    }
  }

  void put(const FlowEnds& ends, double bytes) {
    for (auto& [known, sum] : far_) {
      if (known.out != ends.out || known.in != ends.in) continue;
      sum += bytes;
      return;
    }
    far_.emplace_back(ends, bytes);
  }

  const Schedule& schedule_;
  const Tasks& tasks_;
  const Plan& plan_;
  RankGrid grid_;
  RankGrid experts_;
  const Cluster& cluster_;
  const Profile& profile_;
  const MessageSizes& sizes_;
  const Conditions& conditions_;
  const StageNodes& nodes_;
  Links links_;
  std::vector<double> speeds_;  // by instance
  std::map<std::pair<int, int>, Way> ways_;
  std::map<std::pair<Ring, int>, Group> groups_;
  std::vector<std::pair<FlowEnds, double>> far_;  // flows between nodes of one instance
  std::vector<Taken> taken_;                      // by task
  Loads loads_;
};

}  // namespace

Loads make_loads(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
                 const Profile& profile, const OpTimes& times, const MessageSizes& sizes,
                 const Conditions& conditions, const StageNodes& nodes) {
  return Loading(schedule, tasks, plan, cluster, profile, sizes, conditions, nodes).run(times);
}

}  // namespace rehearse
