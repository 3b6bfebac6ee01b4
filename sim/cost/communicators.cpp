#include "cost/communicators.h"

#include <algorithm>
#include <numeric>

#include "cost/nccl/buffers.h"
#include "cost/nccl/model.h"
#include "cost/nccl/tuning.h"
#include "cost/row_exchange.h"
#include "plan/frameworks/traits.h"
#include "plan/messages.h"
#include "plan/ranks.h"
#include "plan/sharding.h"
#include "plan/stages.h"
#include "plan/work/shape.h"

namespace rehearse {

namespace {

using nccl::Algorithm;
using nccl::Release;

struct Message {
  CommGroup group = CommGroup::world;
  CollectiveOp op = CollectiveOp::all_reduce;
  double bytes = 8;  // a norm, a loss, a flag
  bool operator==(const Message&) const = default;
};

// Properties that decide the communicators of a pipeline rank. All nodes are equal, so the index of the first
// GPU in its node is enough.
struct Place {
  int first_gpu = 0;
  nccl::Peers neighbours = {};  // pipeline ranks before and after
  bool has_experts = false;
  std::vector<Message> messages = {};  // of its stages, each once
  bool operator==(const Place&) const = default;
};

Release release_of(const Plan& plan) {
  return traits(plan).is_of_2021 ? Release::v2_10 : Release::v2_30;
}

bool is_exchange(CollectiveOp op) {
  return op == CollectiveOp::all_to_all || op == CollectiveOp::send_receive;
}

// Pipeline ranks before and after. With looping model chunks, the last rank is also a neighbour of the first.
nccl::Peers neighbours_of(int pipeline_rank, const Plan& plan, const Cluster& cluster, const RankGrid& grid) {
  nccl::Peers peers;
  const auto node = [&](int stage) { return grid.rank({0, 0, 0, 0, stage}) / cluster.node.gpus; };
  const bool loops = plan.vpp > 1 && !is_v_shaped(plan.schedule);
  int before = -1;
  for (const int step : {-1, 1}) {
    int other = pipeline_rank + step;
    if (loops) other = (other + plan.pp) % plan.pp;
    if (other < 0 || other >= plan.pp || other == pipeline_rank || other == before) continue;
    ++(node(other) == node(pipeline_rank) ? peers.near : peers.far);
    before = other;
  }
  return peers;
}

std::vector<Place> places(const Work& work, const Model& model, const Plan& plan, const Cluster& cluster) {
  const RankGrid grid(plan);
  std::vector<Place> places;
  for (int rank = 0; rank < plan.pp; ++rank)
    places.push_back(
        {grid.rank({0, 0, 0, 0, rank}) % cluster.node.gpus, neighbours_of(rank, plan, cluster, grid)});
  const auto place_of = [&](int stage) -> Place& {
    return places[static_cast<std::size_t>(pipeline_rank_of(stage, plan))];
  };
  for (int stage = 0; stage < plan.stages(); ++stage)
    place_of(stage).has_experts |= work.expert_parameters(stage) > 0;
  for (const StepMessage& sent : step_messages(work, model, plan)) {
    const Collective& what = sent.what;
    if (is_row_exchange(what.op) || what.group == CommGroup::world) continue;
    // Transformer Engine's chunks go through buffers of its own.
    if (what.group == CommGroup::tensor && what.op == CollectiveOp::send_receive) continue;
    std::vector<Message>& messages = place_of(sent.stage).messages;
    // Frameworks fill buckets to this size. The schedule knows them in whole layers.
    const bool in_buckets = axis_of(what.group) == Axis::dp;
    const Message message{what.group, what.op,
                          in_buckets ? std::min(plan.bucket_bytes, what.bytes) : what.bytes};
    if (std::ranges::find(messages, message) == messages.end()) messages.push_back(message);
  }
  return places;
}

class Communicators {
 public:
  Communicators(const Model& model, const Plan& plan, const Cluster& cluster,
                const nccl::Constants& constants, const Place& place, int pipeline_rank)
      : model_(model),
        plan_(plan),
        cluster_(cluster),
        constants_(constants),
        place_(place),
        release_(release_of(plan)),
        grid_(plan),
        groups_(plan),
        rank_(grid_.rank({0, 0, 0, 0, pipeline_rank})) {}

  CommunicatorBytes take() {
    add_world();
    add_inside();
    add_pipeline();
    add_replicas();
    if (plan_.sends_rows_once() && place_.has_experts) add_row_exchange();
    const std::vector<Message> tied = messages_in(CommGroup::embedding);
    if (!tied.empty()) add("embedding", CommGroup::embedding, tied, {});
    return std::move(held_);
  }

 private:
  void add_world() {
    const bool is_that_of_shards =
        traits(plan_).fsdp != Fsdp::none && plan_.dp * plan_.cp == plan_.gpus() && shard_replicas(plan_) == 1;
    const bool carries_pipeline = release_ == Release::v2_10;  // p2p_communication.py names no group then
    if (!is_that_of_shards)
      hold("world", world_shape(), {Message{}}, carries_pipeline ? place_.neighbours : nccl::Peers{});
    const ModelGroup group = traits(plan_).model_group;
    const bool is_made = group == ModelGroup::always || (group == ModelGroup::unsharded && plan_.zero == 0);
    if (is_made && plan_.tp * plan_.pp > 1)
      hold("model", group_shape(cluster_, model_parallel()), {Message{}}, {});
  }

  // All nodes are full, except perhaps the last.
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
    add_inside("tp", CommGroup::tensor);
    add_inside("cp", CommGroup::context);
    add_inside("ep", CommGroup::expert);
    add_inside("etp", CommGroup::expert_tensor);
  }

  void add_inside(const std::string& name, CommGroup group) {
    const std::vector<Message> messages = messages_in(group);
    if (messages.empty()) return;
    const bool to_all = std::ranges::any_of(
        messages, [](const Message& message) { return message.op == CollectiveOp::all_to_all; });
    const bool in_ring = std::ranges::any_of(
        messages, [](const Message& message) { return message.op == CollectiveOp::send_receive; });
    const GroupShape shape = group_shape(cluster_, groups_.ranks(group, rank_));
    const int local = (shape.members + shape.nodes - 1) / shape.nodes;
    nccl::Peers peers;
    if (to_all)
      peers = {local - 1, shape.members - local};
    else if (in_ring)
      peers = {local > 1 ? 1 : 0, shape.nodes > 1 ? 1 : 0};
    add(name, group, messages, peers);
  }

  std::vector<Message> messages_in(CommGroup group) const {
    std::vector<Message> messages;
    for (const Message& message : place_.messages)
      if (message.group == group) messages.push_back(message);
    return messages;
  }

  void add_pipeline() {
    if (release_ != Release::v2_10) add("pp", CommGroup::pipeline, {}, place_.neighbours);
  }

  // Besides gradients and parameters, the ranks exchange losses to average them.
  void add_replicas() {
    const auto with_losses = [this](CommGroup group) {
      std::vector<Message> messages = messages_in(group);
      messages.emplace_back();
      return messages;
    };
    add("dp", CommGroup::shards, with_losses(CommGroup::shards), {});
    add("dp across", CommGroup::shard_replicas, messages_in(CommGroup::shard_replicas), {});
    if (!place_.has_experts || plan_.edp() == 1) return;
    // Without groups of their own, expert gradients go together with the others.
    const bool together = messages_in(CommGroup::expert_shards).empty();
    add("expert dp", CommGroup::expert_shards,
        with_losses(together ? CommGroup::shards : CommGroup::expert_shards), {});
    add("expert dp across", CommGroup::expert_replicas, messages_in(CommGroup::shard_replicas), {});
  }

  void add_row_exchange() {
    const std::vector<int> ranks = groups_.ranks(CommGroup::expert, rank_);
    const Shape shape = shape_on_one_rank(model_, plan_);
    held_.emplace_back(to_string(plan_.dispatcher),
                       exchange_buffers(plan_, group_shape(cluster_, ranks), model_.experts->count,
                                        static_cast<double>(shape.rows), static_cast<double>(model_.hidden)));
  }

  void add(const std::string& name, CommGroup group, const std::vector<Message>& messages,
           const nccl::Peers& peers) {
    const std::vector<int> ranks = groups_.ranks(group, rank_);
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

  const Model& model_;
  const Plan& plan_;
  const Cluster& cluster_;
  const nccl::Constants& constants_;
  const Place& place_;
  Release release_;
  RankGrid grid_;
  CommGroups groups_;
  int rank_;
  CommunicatorBytes held_;
};

}  // namespace

bool are_parts_of_one_gpu(const Cluster& cluster) {
  return cluster.node.gpu_link_kind == "device-memory";
}

std::vector<CommunicatorBytes> communicator_bytes(const Work& work, const Model& model, const Plan& plan,
                                                  const Cluster& cluster, const Profile& profile) {
  std::vector<CommunicatorBytes> held(static_cast<std::size_t>(plan.pp));
  // NCCL refuses two ranks on one GPU.
  if (!profile.collectives || are_parts_of_one_gpu(cluster)) return held;
  const nccl::Constants& constants = profile.collectives->constants;
  const std::vector<Place> all = places(work, model, plan, cluster);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto like = static_cast<std::size_t>(std::ranges::find(all, all[rank]) - all.begin());
    held[rank] =
        like < rank
            ? held[like]
            : Communicators(model, plan, cluster, constants, all[rank], static_cast<int>(rank)).take();
  }
  return held;
}

double context_bytes(const Cluster& cluster, const Plan& plan) {
  constexpr double kEager = 1343 * nccl::kMebibyte, kHopper = 1.06e9;
  if (cluster.nccl.sm == 0) return 0;
  const double whole = cluster.nccl.sm >= 90 && !traits(plan).is_of_2021 ? kHopper : kEager;
  return are_parts_of_one_gpu(cluster) ? whole / cluster.node.gpus : whole;
}

}  // namespace rehearse
