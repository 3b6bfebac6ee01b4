#include "run/loads.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cost/collectives.h"
#include "cost/contention.h"
#include "cost/lists.h"
#include "cost/offload.h"
#include "plan/sharding.h"
#include "result/shares.h"
#include "run/message_times.h"
#include "run/transfer_alone.h"
#include "schedule/op_messages.h"

namespace rehearse {

namespace {

// Builds the loads task by task. Repeated parts (the path between two instances, a group's shape) are found
// once.
class LoadsBuilder {
 public:
  LoadsBuilder(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
               const Profile& profile, const MessageSizes& sizes, const Conditions& conditions,
               const StageNodes& nodes)
      : schedule_(schedule),
        tasks_(tasks),
        plan_(plan),
        comm_groups_(plan),
        cluster_(cluster),
        profile_(profile),
        sizes_(sizes),
        conditions_(conditions),
        nodes_(nodes),
        links_(tasks, plan, cluster, conditions) {}

  Loads run(const Prices& prices) {
    const OpTimes& times = prices.times;
    find_speeds();
    loads_.fixed_s.resize(tasks_.size());
    loads_.transfer_s.resize(tasks_.size());
    loads_.taken.resize(tasks_.size());
    loads_.waits_s.resize(tasks_.size());
    message_s_.assign(tasks_.size(), -1);
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
        loads_.fixed_s[task] = host_copy_s(profile_of(leader.instance), cluster_of(leader.instance),
                                           messages(leader).front().bytes);
      } else {
        compute(task, leader.instance, op, times);
      }
      loads_.first_flow.push_back(static_cast<std::uint32_t>(loads_.flows.size()));
    }
    loads_.inside =
        find_contended(schedule_, tasks_, plan_, cluster_, prices.transfers, times, loads_.flows, links_);
    loads_.capacity = links_.table().capacity();
    loads_.ends = links_.table().ends();
    loads_.fabric = links_.table().fabric_links();
    find_transfer_times();
    return std::move(loads_);
  }

  MessageTimes message_times() { return std::move(message_s_); }

 private:
  // The path of a message, found once for each pair of instances.
  struct Path {
    CommunicationTime time;  // of one boundary message
    double least_s = 0;      // between the ranks that the instances are named by; peers may cross nodes
    bool crosses = false;
    std::vector<FlowShare> crossings;
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

  // A slow GPU stretches its kernels. Its peers wait for it, but their messages are no slower.
  void compute(TaskId task, int instance, const Op& op, const OpTimes& times) {
    const TimeParts parts = priced_parts(op, rank_of(instance).pipeline_rank, times);
    loads_.fixed_s[task] = parts.total() / op.parts;
    loads_.waits_s[task] = std::max(0.0, parts.waits / op.parts);
    const double kernels = parts.compute + parts.recompute + parts.optimizer - parts.waits;
    loads_.slow(task, (kernels / speeds_[static_cast<std::size_t>(instance)] - kernels) / op.parts);
  }

  const Instance& rank_of(int instance) const { return tasks_.instances[static_cast<std::size_t>(instance)]; }

  // Cluster and profile that price the messages of an instance.
  const Cluster& cluster_of(int instance) const {
    return nodes_.empty() ? cluster_ : nodes_.of_rank(rank_of(instance).pipeline_rank).cluster;
  }
  const Profile& profile_of(int instance) const {
    return nodes_.empty() ? profile_ : nodes_.of_rank(rank_of(instance).pipeline_rank).profile;
  }

  CollectiveTimes& times_of(int instance) {
    const Cluster& cluster = cluster_of(instance);
    return times_.try_emplace(&cluster, profile_of(instance), cluster).first->second;
  }

  const RankOps& ops_of(OpRef ref) const {
    return schedule_.ranks[static_cast<std::size_t>(rank_of(ref.instance).pipeline_rank)];
  }
  const Op& op_at(OpRef ref) const { return ops_of(ref)[static_cast<std::size_t>(ref.op)]; }

  // Bytes are whole, and at least one where there are any, so that both engines count the same bytes.
  void add_flow(const Endpoints& ends, double bytes) {
    const double whole = std::ceil(bytes);
    if (whole > 0) loads_.flows.push_back({ends, static_cast<std::uint64_t>(whole)});
  }

  void send(TaskId task, int from, int to) {
    const auto [found, is_new] = ways_.try_emplace({from, to});
    Path& way = found->second;
    if (is_new) way = way_between(from, to);
    loads_.fixed_s[task] = way.time.latency_s;
    message_s_[task] = way.least_s;
    if (way.time.extrapolated) loads_.extrapolated_s += way.time.total();
    const double counted = way.time.transfer_s * rate(way.crosses);
    for (const FlowShare& crossing : way.crossings)
      add_flow(crossing.ends, crossing.carried(sizes_.boundary_bytes, counted));
  }

  // The seconds of a message alone on its port, times this rate, count as bytes. So the protocol's overhead
  // does too.
  double rate(bool crosses) const { return crosses ? links_.nic_bandwidth() : links_.gpu_bandwidth(); }

  Path way_between(int from, int to) {
    const auto time = [&](bool crosses) { return times_of(from).send(sizes_.boundary_bytes, crosses); };
    const int gpus = cluster_.node.gpus;
    const bool crosses = links_.crosses_nodes(from, to),
               own_crosses = rank_of(from).rank / gpus != rank_of(to).rank / gpus;
    const CommunicationTime slowest = time(crosses);
    const double least_s = crosses == own_crosses ? slowest.total() : time(own_crosses).total();
    return {slowest, least_s, crosses, links_.message(from, to)};
  }

  void find_transfer_times() {
    std::vector<double> bytes(loads_.capacity.size(), 0);
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      loads_.transfer_s[task] = transfer_alone_s(loads_, task, bytes);
      if (const ContendedOp* op = loads_.inside.of(task)) {
        loads_.fixed_s[task] -= op->priced_s;
        loads_.transfer_s[task] = op->alone_s;
      }
      loads_.taken[task] = share_lost(taken_[task], loads_.alone_s(task));
    }
  }

  std::vector<Collective> messages(OpRef ref) const {
    return messages_of(sizes_, plan_, ops_of(ref), static_cast<std::size_t>(ref.op));
  }

  // The messages of a task over one group, with their isolated time.
  struct Exchange {
    CommGroup of = CommGroup::shards;
    const Group* group = nullptr;
    CommunicationTime time;
    double far_bytes = 0;  // of a member
    Taken taken;           // from kernels beside it
    bool crosses() const { return group->shape.nodes > 1; }
    void repeat(double times) {
      for (double* part : {&time.latency_s, &time.transfer_s, &far_bytes, &taken.memory_s}) *part *= times;
    }
  };

  const Group& group(CommGroup of, int leader) {
    const auto [found, is_new] = groups_.try_emplace({of, leader});
    Group& group = found->second;
    if (!is_new) return group;
    const std::vector<int> ranks = comm_groups_.ranks(of, rank_of(leader).rank);
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

  Exchange exchange(const Collective& message, int leader) {
    const Group& of = group(message.group, leader);
    return {
        message.group, &of, times_of(leader).collective(message.op, message.bytes, of.shape),
        far_bytes(message.op, message.bytes, of.shape),
        taken_by(profile_of(leader), cluster_of(leader).gpu, of.shape, message.op, message.bytes, of.taken)};
  }

  void collective(TaskId task, OpRef ref) {
    const std::vector<Collective> sent = messages(ref);
    if (op_at(ref).kind == OpKind::reduce_grad) loads_.fixed_s[task] += bucket_copies_s(ref, sent);
    std::vector<Exchange> exchanges;
    const auto is_broadcast = [](const Collective& message) { return message.op == CollectiveOp::broadcast; };
    const auto others = std::ranges::find_if_not(sent, is_broadcast);
    if (others != sent.begin()) exchanges.push_back(broadcasts(ref.instance, {sent.begin(), others}));
    for (auto message = others; message != sent.end(); ++message)
      exchanges.push_back(repeated(ref, *message));
    if (!exchanges.empty()) load(task, exchanges);
  }

  static double bytes_of(const std::vector<Collective>& sent) {
    double bytes = 0;
    for (const Collective& message : sent) bytes += static_cast<double>(message.calls) * message.bytes;
    return bytes;
  }

  double bucket_copies_s(OpRef ref, const std::vector<Collective>& sent) const {
    const double passes = bucket_copies(plan_);
    return passes > 0 ? passes * bytes_of(sent) / cluster_of(ref.instance).gpu.memory_bandwidth : 0;
  }

  // Each owner's own broadcasts, in sequence. No two begin at the same rank, so each goes round the ring
  // alone.
  Exchange broadcasts(int leader, const std::vector<Collective>& sent) {
    const Collective& largest = *std::ranges::max_element(sent, {}, &Collective::bytes);
    Exchange all = exchange(largest, leader);
    all.repeat(bytes_of(sent) / std::max(1.0, largest.bytes));
    all.time = {};
    std::map<double, CommunicationTime> known;
    for (const Collective& message : sent) {
      const auto [time, is_new] = known.try_emplace(message.bytes);
      if (is_new) time->second = times_of(leader).lone_broadcast(message.bytes, all.group->shape);
      all.time += time->second;
    }
    return all;
  }

  // All calls of a message, one after the other.
  Exchange repeated(OpRef ref, const Collective& message) {
    Exchange all = exchange(message, ref.instance);
    const bool is_list = !sizes_.weights.empty() && message.group == CommGroup::shards;
    if (is_list && op_at(ref).kind == OpKind::unshard)
      all.time.latency_s +=
          list_copies_s(profile_of(ref.instance), cluster_of(ref.instance), shard_size(plan_), message.bytes);
    all.repeat(static_cast<double>(message.calls));
    return all;
  }

  // The instances of the first exchange form the task. Each instance puts its bytes on its GPU's port. Across
  // nodes, it puts its part of its node's bytes on the NIC. Exchanges over the same links are one flow.
  void load(TaskId task, const std::vector<Exchange>& exchanges) {
    double transfer_s = 0;
    for (const Exchange& each : exchanges) {
      loads_.fixed_s[task] += each.time.latency_s;
      transfer_s += each.time.transfer_s;
      if (each.time.extrapolated) loads_.extrapolated_s += each.time.total();
      taken_[task] += each.taken;
    }
    message_s_[task] = loads_.fixed_s[task] + transfer_s;
    for (const int instance : exchanges.front().group->instances) {
      double near_bytes = 0;
      far_.clear();
      for (const Exchange& each : exchanges) {
        const double bytes = each.time.transfer_s * rate(each.crosses());
        if (!each.crosses()) {
          near_bytes += bytes;
          continue;
        }
        for (const FlowShare& crossing : links_.ring(each.of, instance))
          put(crossing.ends, crossing.carried(each.far_bytes, bytes / each.group->shape.per_nic));
      }
      add_flow(links_.gpu(instance), near_bytes);
      for (const auto& [ends, bytes] : far_) add_flow(ends, bytes);
    }
  }

  void put(const Endpoints& ends, double bytes) {
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
  CommGroups comm_groups_;
  const Cluster& cluster_;
  const Profile& profile_;
  const MessageSizes& sizes_;
  const Conditions& conditions_;
  const StageNodes& nodes_;
  Links links_;
  std::vector<double> speeds_;  // by instance
  std::map<const Cluster*, CollectiveTimes> times_;
  std::map<std::pair<int, int>, Path> ways_;
  std::map<std::pair<CommGroup, int>, Group> groups_;
  std::vector<std::pair<Endpoints, double>> far_;  // flows between nodes of one instance
  std::vector<Taken> taken_;                       // by task
  MessageTimes message_s_;
  Loads loads_;
};

}  // namespace

Loads make_loads(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
                 const Profile& profile, const Prices& prices, const MessageSizes& sizes,
                 const Conditions& conditions, const StageNodes& nodes) {
  MessageTimes unused;
  return make_loads(schedule, tasks, plan, cluster, profile, prices, sizes, conditions, nodes, unused);
}

Loads make_loads(const Schedule& schedule, const Tasks& tasks, const Plan& plan, const Cluster& cluster,
                 const Profile& profile, const Prices& prices, const MessageSizes& sizes,
                 const Conditions& conditions, const StageNodes& nodes, MessageTimes& message_s) {
  LoadsBuilder builder(schedule, tasks, plan, cluster, profile, sizes, conditions, nodes);
  Loads loads = builder.run(prices);
  message_s = builder.message_times();
  return loads;
}

}  // namespace rehearse
