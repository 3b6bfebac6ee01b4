#include "plan/messages.h"

#include <algorithm>
#include <cmath>

#include "plan/owners.h"
#include "plan/sharding.h"
#include "plan/stages.h"
#include "plan/units.h"

namespace rehearse {

namespace {

// Each unit's share of the stage's parameters of a kind. `whole`: all parameters of that kind.
std::vector<double> unit_shares(const Work& work, int stage, double Unit::*kind, double whole) {
  std::vector<double> shares;
  for (const Unit& unit : units(work, stage)) shares.push_back(whole > 0 ? unit.*kind / whole : 0);
  return shares;
}

// ZeRO-3 reduces unit by unit. Otherwise a bucket holds the gradients of at least one whole layer. With more
// buckets than layers, some would start before their backward ends.
std::vector<int> bucket_counts(const MessageSizes& sizes, const Model& model, const Plan& plan) {
  std::vector<int> buckets;
  for (const std::vector<double>& units : sizes.units)
    buckets.push_back(std::max(1, static_cast<int>(units.size())));
  if (plan.zero == 3) return buckets;
  const std::vector<Stage> stages = split_layers(model, plan);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double reduced = sizes.gradient_bytes[s] + (plan.edp() > 1 ? sizes.expert_gradient_bytes[s] : 0);
    const double full = std::ceil(reduced / plan.bucket_bytes);
    const double pieces = static_cast<double>(stages[s].layers + stages[s].embedding + stages[s].head);
    buckets.push_back(static_cast<int>(std::clamp(full, 1.0, std::max(1.0, std::min(pieces, 1000.0)))));
  }
  return buckets;
}

// Bytes of an op's stage, as gathered on one rank.
struct Payload {
  double dense = 0;  // outside experts, frozen parameters included
  double experts = 0;
  double all() const { return dense + experts; }
};

// The op's share of its stage. `units`: shares of the units of each stage.
double share_of(const SentBy& op, const std::vector<std::vector<double>>& units) {
  const auto stage = static_cast<std::size_t>(op.stage), parts = static_cast<std::size_t>(op.parts);
  if (op.parts == 1 || stage >= units.size() || units[stage].size() != parts) return 1.0 / op.parts;
  return units[stage][static_cast<std::size_t>(unit_of(op.kind, op.part, op.parts))];
}

Payload payload_of(const MessageSizes& sizes, const SentBy& op, const std::vector<double>& dense,
                   const std::vector<double>& experts) {
  const auto stage = static_cast<std::size_t>(op.stage);
  return {dense[stage] * share_of(op, sizes.units),
          stage < experts.size() ? experts[stage] * share_of(op, sizes.expert_units) : 0};
}

// Modules whose outputs need no gradient gather nothing for the backward pass: their hooks depend on gradients
// (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, _register_pre_backward_hook).
double frozen_of(const MessageSizes& sizes, const SentBy& op) {
  if (sizes.frozen_bytes.empty() || op.for_backward) return 0;
  return sizes.frozen_bytes[static_cast<std::size_t>(op.stage)] * share_of(op, sizes.frozen_units);
}

Weights weights_of(const MessageSizes& sizes, const SentBy& op) {
  const std::vector<Weights>& units = sizes.weights[static_cast<std::size_t>(op.stage)];
  if (op.parts > 1) return units[static_cast<std::size_t>(unit_of(op.kind, op.part, op.parts))];
  Weights sum;
  for (const Weights& unit : units) sum += unit;
  return sum;
}

// Dense parameters go to the ranks that hold each other's shards, experts to the ranks with the same experts.
std::vector<Collective> over_replicas(const MessageSizes& sizes, const Plan& plan, const SentBy& op,
                                      CollectiveOp what, const Payload& bytes) {
  const bool gathers = op.kind == OpKind::unshard;
  const bool are_owned = gathers && !sizes.owned_bytes.empty();
  const bool one_group = plan.edp() == plan.dp * plan.cp;
  const bool together = one_group && !are_owned;
  const double in_shards = together ? bytes.all() : bytes.dense;
  std::vector<Collective> messages;
  if (!sizes.weights.empty()) {
    const Weights weights = weights_of(sizes, op);
    const int pieces = gathers ? weights.all : weights.buckets;
    messages.push_back({what, CommGroup::shards, in_shards / std::max(1, pieces),
                        pieces + (gathers && op.for_backward ? weights.dropped : 0)});
  } else if (are_owned) {
    for (const double own : sizes.owned_bytes[static_cast<std::size_t>(op.stage)])
      if (own > 0) messages.push_back({CollectiveOp::broadcast, CommGroup::shards, own});
  } else {
    messages.push_back({what, CommGroup::shards, in_shards});
  }
  if (bytes.experts > 0 && !together)
    messages.push_back({what, one_group ? CommGroup::shards : CommGroup::expert_shards, bytes.experts});
  return messages;
}

// Share of a stage's parameters outside experts that the busiest rank steps.
double stepped_share(const MessageSizes& sizes, const Plan& plan, std::size_t stage) {
  if (sizes.owned_bytes.empty()) return 1.0 / shard_size(plan);
  return std::ranges::max(sizes.owned_bytes[stage]) / std::max(1.0, sizes.parameter_bytes[stage]);
}

Collective host_copy(double bytes) {
  return {CollectiveOp::send_receive, CommGroup::host, bytes};
}

}  // namespace

MessageSizes message_sizes(const Work& work, const Model& model, const Plan& plan,
                           std::vector<double> saved_bytes) {
  MessageSizes sizes;
  sizes.boundary_bytes = work.boundary_bytes;
  sizes.saved_bytes = std::move(saved_bytes);
  for (int stage = 0; stage < plan.stages(); ++stage) {
    const double experts = work.expert_parameters(stage), dense = work.parameters(stage) - experts;
    sizes.gradient_bytes.push_back(dense * gradient_wire_bytes(plan));
    sizes.expert_gradient_bytes.push_back(experts * gradient_wire_bytes(plan));
    sizes.parameter_bytes.push_back(dense * parameter_bytes(plan));
    sizes.expert_parameter_bytes.push_back(experts * parameter_bytes(plan));
    if (owns_parameters(plan))
      for (double& own : sizes.owned_bytes.emplace_back(owned_elements(work, plan, stage)))
        own *= parameter_bytes(plan);
    if (plan.zero < 3) continue;
    const double frozen = work.frozen_parameters(stage);
    sizes.frozen_bytes.push_back(frozen * frozen_parameter_bytes(plan));
    sizes.frozen_units.push_back(unit_shares(work, stage, &Unit::frozen, frozen));
    sizes.units.push_back(unit_shares(work, stage, &Unit::dense, dense));
    sizes.expert_units.push_back(unit_shares(work, stage, &Unit::experts, experts));
  }
  if (std::ranges::count(sizes.frozen_bytes, 0) == std::ssize(sizes.frozen_bytes)) sizes.frozen_bytes.clear();
  if (exchanges_lists(plan)) sizes.weights = unit_weights(work);
  sizes.buckets = bucket_counts(sizes, model, plan);
  const std::int64_t rows = (model.vocab + plan.tp - 1) / plan.tp;
  sizes.tied_bytes = static_cast<double>(rows * model.hidden) * gradient_wire_bytes(plan);
  return sizes;
}

CollectiveOp gradient_reduction(const Plan& plan) {
  return scatters_gradients(plan) ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
}

namespace {

std::vector<Collective> with_empty_ones(const MessageSizes& sizes, const Plan& plan, const SentBy& op) {
  const auto stage = static_cast<std::size_t>(op.stage);
  const auto gradients = [&] {
    return payload_of(sizes, op, sizes.gradient_bytes, sizes.expert_gradient_bytes);
  };
  const auto parameters = [&] {
    return payload_of(sizes, op, sizes.parameter_bytes, sizes.expert_parameter_bytes);
  };
  const auto gathered = [&](Payload bytes) {
    bytes.dense += frozen_of(sizes, op);
    return bytes;
  };
  // Experts without replicas send nothing.
  const auto shared = [&](Payload bytes) {
    if (plan.edp() == 1) bytes.experts = 0;
    return bytes;
  };
  const auto stepped = [&](const Payload& bytes) {
    return bytes.dense * stepped_share(sizes, plan, stage) + bytes.experts / expert_shard_size(plan);
  };
  switch (op.kind) {
    case OpKind::send_forward:
    case OpKind::recv_forward:
    case OpKind::send_backward:
    case OpKind::recv_backward:
      return {{CollectiveOp::send_receive, CommGroup::pipeline, sizes.boundary_bytes}};
    case OpKind::unshard:
      return over_replicas(sizes, plan, op, CollectiveOp::all_gather, gathered(shared(parameters())));
    case OpKind::reduce_grad:
      return over_replicas(sizes, plan, op, gradient_reduction(plan), shared(gradients()));
    case OpKind::reduce_replicas:
      return {{CollectiveOp::all_reduce, CommGroup::shard_replicas,
               shared(gradients()).all() / shard_size(plan)}};
    case OpKind::reduce_tied:
      return {{CollectiveOp::all_reduce, CommGroup::embedding, sizes.tied_bytes}};
    case OpKind::offload:
    case OpKind::reload:
      return {host_copy(stage < sizes.saved_bytes.size() ? sizes.saved_bytes[stage] : 0)};
    case OpKind::offload_grad:
      return {host_copy(stepped(gradients()))};
    case OpKind::reload_param:
      return {host_copy(stepped(parameters()))};
    default:
      return {};
  }
}

}  // namespace

std::vector<Collective> messages_of(const MessageSizes& sizes, const Plan& plan, const SentBy& op) {
  std::vector<Collective> messages = with_empty_ones(sizes, plan, op);
  const bool of_units =
      op.kind == OpKind::unshard || op.kind == OpKind::reduce_grad || op.kind == OpKind::reduce_replicas;
  if (of_units && !sizes.frozen_bytes.empty())  // a unit may be frozen as a whole
    std::erase_if(messages, [](const Collective& message) { return message.bytes == 0; });
  return messages;
}

}  // namespace rehearse
