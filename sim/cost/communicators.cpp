#include "cost/communicators.h"

#include <algorithm>
#include <numeric>

#include "cost/nccl/buffers.h"
#include "cost/nccl/model.h"
#include "cost/nccl/tuning.h"
#include "plan/ranks.h"
#include "plan/sharding.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

using nccl::Algorithm;
using nccl::Release;

constexpr double kScalar = 8;  // a norm, a loss, a flag

struct Message {
  CollectiveOp op = CollectiveOp::all_reduce;
  double bytes = kScalar;
};

bool is_of_2021(const Plan& plan) {
  return plan.framework == Framework::megatron_2021 || plan.framework == Framework::deepspeed_2021;
}

Release release_of(const Plan& plan) {
  return is_of_2021(plan) ? Release::v2_10 : Release::v2_30;
}

bool is_exchange(CollectiveOp op) {
  return op == CollectiveOp::all_to_all || op == CollectiveOp::send_receive;
}

class Communicators {
 public:
  Communicators(const Work& work, const Plan& plan, const Cluster& cluster, const nccl::Constants& constants,
                int pipeline_rank)
      : work_(work),
        plan_(plan),
        cluster_(cluster),
        constants_(constants),
        release_(release_of(plan)),
        grid_(plan),
        pipeline_rank_(pipeline_rank),
        rank_(grid_.rank({0, 0, 0, 0, pipeline_rank})) {}

  std::vector<std::pair<std::string, double>> take(bool tied) {
    add_world();
    add_inside();
    add_pipeline();
    add_replicas();
    if (tied) add_tied();
    return std::move(held_);
  }

 private:
  void add_world() {
    const bool is_that_of_shards =
        is_fsdp(plan_.framework) && plan_.dp * plan_.cp == plan_.gpus() && plan_.zero_shard == 0;
    const bool carries_pipeline = release_ == Release::v2_10;  // p2p_communication.py names no group then
    if (!is_that_of_shards)
      hold("world", world_shape(), {Message{}}, carries_pipeline ? neighbours() : nccl::Peers{});
    const bool is_sharded = plan_.framework == Framework::megatron_core && plan_.zero > 0;
    if (!is_fsdp(plan_.framework) && !is_sharded && plan_.tp * plan_.pp > 1)
      add("model", model_parallel(), {Message{}}, {});
  }

  // Full nodes, but perhaps the last.
  GroupShape world_shape() const {
    const int gpus = cluster_.node.gpus;
    std::vector<int> first(static_cast<std::size_t>(std::min(plan_.gpus(), gpus)));
    std::iota(first.begin(), first.end(), 0);
    GroupShape shape = group_shape(cluster_, first);
    shape.members = plan_.gpus();
    shape.nodes = (plan_.gpus() + gpus - 1) / gpus;
    return shape;
  }

  // One replica's ranks, over which the norm of the gradients is summed.
  std::vector<int> model_parallel() const {
    std::vector<int> ranks;
    for (const int stage : grid_.group(rank_, Axis::pp))
      for (const int rank : grid_.group(stage, Axis::tp)) ranks.push_back(rank);
    std::ranges::sort(ranks);
    return ranks;
  }

  // Groups of the collectives that stand between kernels.
  void add_inside() {
    const RankGrid experts = RankGrid::of_experts(plan_);
    add_axis("tp", grid_, Axis::tp, false);
    add_axis("cp", grid_, Axis::cp, false);
    add_axis("ep", experts, Axis::ep, true);
    add_axis("etp", experts, Axis::tp, true);
  }

  void add_axis(const std::string& name, const RankGrid& grid, Axis axis, bool of_experts) {
    const std::vector<int> ranks = grid.group(rank_, axis);
    const std::vector<Message> messages = messages_along(axis, of_experts);
    if (messages.empty()) return;
    const bool to_all = std::ranges::any_of(
        messages, [](const Message& message) { return message.op == CollectiveOp::all_to_all; });
    const bool in_ring = std::ranges::any_of(
        messages, [](const Message& message) { return message.op == CollectiveOp::send_receive; });
    const GroupShape shape = group_shape(cluster_, ranks);
    const int local = (shape.members + shape.nodes - 1) / shape.nodes;
    nccl::Peers peers;
    if (to_all)
      peers = {local - 1, shape.members - local};
    else if (in_ring)
      peers = {local > 1 ? 1 : 0, shape.nodes > 1 ? 1 : 0};
    add(name, ranks, messages, peers);
  }

  std::vector<Message> messages_along(Axis axis, bool of_experts) const {
    std::vector<Message> messages;
    const auto add_list = [&](const std::vector<Kernel>& kernels) {
      for (const Kernel& kernel : kernels) {
        const auto* collective = std::get_if<Collective>(&kernel.what);
        if (collective == nullptr || collective->of_all || collective->axis != axis ||
            collective->of_experts != of_experts)
          continue;
        // Transformer Engine's chunks go through buffers of its own.
        if (axis == Axis::tp && collective->op == CollectiveOp::send_receive) continue;
        messages.push_back({collective->op, collective->bytes});
      }
    };
    for (const int stage : own_stages()) {
      for (const Repeated& part : work_.parts[static_cast<std::size_t>(stage)]) {
        const Block& block = work_.blocks[static_cast<std::size_t>(part.block)];
        for (const auto* list :
             {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
          add_list(*list);
      }
    }
    return messages;
  }

  std::vector<int> own_stages() const {
    std::vector<int> stages;
    for (int stage = 0; stage < plan_.stages(); ++stage)
      if (pipeline_rank_of(stage, plan_) == pipeline_rank_) stages.push_back(stage);
    return stages;
  }

  // Pipeline ranks before and after; the ends meet where chunks loop.
  nccl::Peers neighbours() const {
    nccl::Peers peers;
    const bool loops = plan_.vpp > 1 && !is_v_shaped(plan_.schedule);
    std::vector<int> others;
    for (const int step : {-1, 1}) {
      int other = pipeline_rank_ + step;
      if (loops) other = (other + plan_.pp) % plan_.pp;
      if (other >= 0 && other < plan_.pp && other != pipeline_rank_) others.push_back(other);
    }
    others.erase(std::unique(others.begin(), others.end()), others.end());
    for (const int other : others) {
      const int node = grid_.rank({0, 0, 0, 0, other}) / cluster_.node.gpus;
      ++(node == rank_ / cluster_.node.gpus ? peers.near : peers.far);
    }
    return peers;
  }

  void add_pipeline() {
    if (release_ != Release::v2_10) add("pp", grid_.group(rank_, Axis::pp), {}, neighbours());
  }

  // Gradients are summed, or scattered and parameters gathered; losses are averaged.
  void add_replicas() {
    double dense = 0, experts = 0;
    for (const int stage : own_stages()) {
      const double of_experts = work_.expert_parameters(stage);
      experts = std::max(experts, of_experts);
      dense = std::max(dense, work_.parameters(stage) - of_experts);
    }
    const auto bytes = [&](double parameters) {
      return std::min(plan_.bucket_bytes, parameters * gradient_wire_bytes(plan_));
    };
    add("dp", shard_group(grid_, plan_, rank_), sums(bytes(dense)), {});
    if (shard_replicas(plan_) > 1)
      add("dp across", replica_group(grid_, plan_, rank_), {{CollectiveOp::all_reduce, bytes(dense)}}, {});
    if (experts <= 0 || plan_.edp() == 1) return;
    add("expert dp", expert_shard_group(plan_, rank_), sums(bytes(experts)), {});
    const std::vector<int> across = expert_replica_group(plan_, rank_);
    if (plan_.zero > 0) add("expert dp across", across, {{CollectiveOp::all_reduce, bytes(experts)}}, {});
  }

  std::vector<Message> sums(double bytes) const {
    if (plan_.zero == 0) return {Message{}, {CollectiveOp::all_reduce, bytes}};
    return {Message{}, {CollectiveOp::reduce_scatter, bytes}, {CollectiveOp::all_gather, bytes}};
  }

  void add_tied() {
    const int last = pipeline_rank_of(plan_.stages() - 1, plan_);
    if (last == 0 || (pipeline_rank_ != 0 && pipeline_rank_ != last)) return;
    const std::vector<int> pipeline = grid_.group(rank_, Axis::pp);
    add("embedding", {pipeline.front(), pipeline[static_cast<std::size_t>(last)]},
        {{CollectiveOp::all_reduce, plan_.bucket_bytes}}, {});
  }

  void add(const std::string& name, const std::vector<int>& ranks, const std::vector<Message>& messages,
           const nccl::Peers& peers) {
    if (ranks.size() > 1) hold(name, group_shape(cluster_, ranks), messages, peers);
  }

  void hold(const std::string& name, const GroupShape& shape, const std::vector<Message>& messages,
            const nccl::Peers& peers) {
    if (shape.members < 2) return;
    const nccl::Buffers buffers(constants_, cluster_, shape, release_);
    std::set<Algorithm> algorithms;
    if (release_ == Release::v2_10) algorithms = {Algorithm::ring, Algorithm::tree};
    for (const Message& message : messages) {
      if (release_ == Release::v2_10 || is_exchange(message.op)) continue;
      algorithms.insert(nccl::choose(constants_, buffers.graph(), message.op, message.bytes).algorithm);
    }
    held_.emplace_back(name, buffers.collectives(algorithms) + buffers.exchanges(peers));
  }

  const Work& work_;
  const Plan& plan_;
  const Cluster& cluster_;
  const nccl::Constants& constants_;
  Release release_;
  RankGrid grid_;
  int pipeline_rank_;
  int rank_;
  std::vector<std::pair<std::string, double>> held_;
};

}  // namespace

std::vector<std::pair<std::string, double>> communicator_bytes(const Work& work, const Model& model,
                                                               const Plan& plan, const Cluster& cluster,
                                                               const Profile& profile, int pipeline_rank) {
  // It refuses two ranks on one GPU.
  if (!profile.collectives || cluster.node.gpu_link_kind == "device-memory") return {};
  const nccl::Constants& constants = profile.collectives->constants;
  return Communicators(work, plan, cluster, constants, pipeline_rank).take(model.tied_embeddings);
}

double context_bytes(const Cluster& cluster, const Plan& plan) {
  constexpr double kEager = 1343 * nccl::kMebibyte, kHopper = 1.06e9;
  if (cluster.nccl.sm == 0) return 0;
  return cluster.nccl.sm >= 90 && !is_of_2021(plan) ? kHopper : kEager;
}

}  // namespace rehearse
