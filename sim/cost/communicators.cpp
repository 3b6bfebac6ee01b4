#include "cost/communicators.h"

#include <algorithm>
#include <numeric>

#include "cost/nccl/buffers.h"
#include "cost/nccl/model.h"
#include "cost/nccl/tuning.h"
#include "cost/row_exchange.h"
#include "plan/frameworks/traits.h"
#include "plan/ranks.h"
#include "plan/sharding.h"
#include "plan/stages.h"
#include "plan/work/shape.h"

namespace rehearse {

namespace {

using nccl::Algorithm;
using nccl::Release;

constexpr double kScalar = 8;  // a norm, a loss, a flag

struct Message {
  CollectiveOp op = CollectiveOp::all_reduce;
  double bytes = kScalar;
  bool operator==(const Message&) const = default;
};

// What the communicators of a pipeline rank hang on. Nodes are alike: where in its node the first GPU lies is
// enough.
struct Place {
  int first_gpu = 0;
  nccl::Peers neighbours = {};  // pipeline ranks before and after
  bool ties_embedding = false;
  std::vector<int> blocks = {};   // that its stages run
  double dense = 0, experts = 0;  // parameters of its largest stage
  bool operator==(const Place&) const = default;
};

Release release_of(const Plan& plan) {
  return traits(plan).is_of_2021 ? Release::v2_10 : Release::v2_30;
}

bool is_exchange(CollectiveOp op) {
  return op == CollectiveOp::all_to_all || op == CollectiveOp::send_receive;
}

// Pipeline ranks before and after; the ends meet where chunks loop.
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
  const int last = pipeline_rank_of(plan.stages() - 1, plan);
  std::vector<Place> places;
  for (int rank = 0; rank < plan.pp; ++rank) {
    const bool ties = model.shares_embedding() && last > 0 && (rank == 0 || rank == last);
    places.push_back(
        {grid.rank({0, 0, 0, 0, rank}) % cluster.node.gpus, neighbours_of(rank, plan, cluster, grid), ties});
  }
  for (int stage = 0; stage < plan.stages(); ++stage) {
    Place& place = places[static_cast<std::size_t>(pipeline_rank_of(stage, plan))];
    for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)])
      if (std::ranges::find(place.blocks, part.block) == place.blocks.end())
        place.blocks.push_back(part.block);
    const double of_experts = work.expert_parameters(stage);
    place.experts = std::max(place.experts, of_experts);
    place.dense = std::max(place.dense, work.parameters(stage) - of_experts);
  }
  return places;
}

class Communicators {
 public:
  Communicators(const Work& work, const Model& model, const Plan& plan, const Cluster& cluster,
                const nccl::Constants& constants, const Place& place, int pipeline_rank)
      : work_(work),
        model_(model),
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
    if (plan_.sends_rows_once() && place_.experts > 0) add_row_exchange();
    if (place_.ties_embedding) add_tied();
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
    const auto add_list = [&](const std::vector<Kernel>& kernels) {
      for (const Kernel& kernel : kernels) {
        const auto* collective = std::get_if<Collective>(&kernel.what);
        if (collective == nullptr || is_row_exchange(collective->op) || collective->group != group) continue;
        // Transformer Engine's chunks go through buffers of its own.
        if (group == CommGroup::tensor && collective->op == CollectiveOp::send_receive) continue;
        const Message message{collective->op, collective->bytes};
        if (std::ranges::find(messages, message) == messages.end()) messages.push_back(message);
      }
    };
    for (const int number : place_.blocks) {
      const Block& block = work_.blocks[static_cast<std::size_t>(number)];
      for (const auto* list :
           {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
        add_list(*list);
    }
    return messages;
  }

  void add_pipeline() {
    if (release_ != Release::v2_10) add("pp", CommGroup::pipeline, {}, place_.neighbours);
  }

  // Gradients are summed, or scattered and parameters gathered; losses are averaged.
  void add_replicas() {
    const double dense = place_.dense, experts = place_.experts;
    const auto bytes = [&](double parameters) {
      return std::min(plan_.bucket_bytes, parameters * gradient_wire_bytes(plan_));
    };
    const CollectiveOp gathers = owns_parameters(plan_) ? CollectiveOp::broadcast : CollectiveOp::all_gather;
    add("dp", CommGroup::shards, sums(bytes(dense), gathers), {});
    if (shard_replicas(plan_) > 1)
      add("dp across", CommGroup::shard_replicas, {{CollectiveOp::all_reduce, bytes(dense)}}, {});
    if (experts <= 0 || plan_.edp() == 1) return;
    add("expert dp", CommGroup::expert_shards, sums(bytes(experts), CollectiveOp::all_gather), {});
    add("expert dp across", CommGroup::expert_replicas, {{CollectiveOp::all_reduce, bytes(experts)}}, {});
  }

  void add_row_exchange() {
    const std::vector<int> ranks = groups_.ranks(CommGroup::expert, rank_);
    const Shape shape = shape_on_one_rank(model_, plan_);
    held_.emplace_back(to_string(plan_.dispatcher),
                       exchange_buffers(plan_, group_shape(cluster_, ranks), model_.experts->count,
                                        static_cast<double>(shape.rows), static_cast<double>(model_.hidden)));
  }

  std::vector<Message> sums(double bytes, CollectiveOp gathers) const {
    if (plan_.zero == 0) return {Message{}, {CollectiveOp::all_reduce, bytes}};
    const bool owned = owns_parameters(plan_);
    return {Message{},
            {owned ? CollectiveOp::all_reduce : CollectiveOp::reduce_scatter, bytes},
            {gathers, bytes}};
  }

  void add_tied() {
    add("embedding", CommGroup::embedding, {{CollectiveOp::all_reduce, plan_.bucket_bytes}}, {});
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

  const Work& work_;
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
            : Communicators(work, model, plan, cluster, constants, all[rank], static_cast<int>(rank)).take();
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
