#include "plan/messages.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/owners.h"
#include "plan/sharding.h"
#include "plan/stages.h"
#include "plan/units.h"

namespace rehearse {

namespace {

// Each unit's part of the stage's parameters of a kind.
std::vector<double> unit_shares(const Work& work, int stage, double Unit::*kind, double whole) {
  std::vector<double> shares;
  for (const Unit& unit : units(work, stage)) shares.push_back(whole > 0 ? unit.*kind / whole : 0);
  return shares;
}

// ZeRO-3 reduces unit by unit. Otherwise a bucket holds whole layers' gradients at the finest: more buckets
// than layers would start before their backward ends.
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

// Bytes that an op moves of its stage's, as they lie on one rank when gathered.
struct Moved {
  double dense = 0;
  double experts = 0;
  double all() const { return dense + experts; }
};

// The op's share of what lies in the units of its stage.
double share_of(const SentBy& op, const std::vector<std::vector<double>>& units) {
  const auto stage = static_cast<std::size_t>(op.stage), parts = static_cast<std::size_t>(op.parts);
  if (op.parts == 1 || stage >= units.size() || units[stage].size() != parts) return 1.0 / op.parts;
  return units[stage][static_cast<std::size_t>(unit_of(op.kind, op.part, op.parts))];
}

Moved moved(const MessageSizes& sizes, const SentBy& op, const std::vector<double>& dense,
            const std::vector<double>& experts) {
  const auto stage = static_cast<std::size_t>(op.stage);
  return {dense[stage] * share_of(op, sizes.units),
          stage < experts.size() ? experts[stage] * share_of(op, sizes.expert_units) : 0};
}

Weights weights_of(const MessageSizes& sizes, const SentBy& op) {
  const std::vector<Weights>& units = sizes.weights[static_cast<std::size_t>(op.stage)];
  if (op.parts > 1) return units[static_cast<std::size_t>(unit_of(op.kind, op.part, op.parts))];
  Weights sum;
  for (const Weights& unit : units) sum += unit;
  return sum;
}

// Dense parameters among all that hold the same shards, experts among the ranks with the same experts.
std::vector<Collective> over_replicas(const MessageSizes& sizes, const Plan& plan, const SentBy& op,
                                      CollectiveOp what, const Moved& bytes) {
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
                        pieces + (gathers && op.again ? weights.dropped : 0)});
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

// Of what a stage has outside experts, the part that the rank steps which steps most.
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
    sizes.units.push_back(unit_shares(work, stage, &Unit::dense, dense));
    sizes.expert_units.push_back(unit_shares(work, stage, &Unit::experts, experts));
  }
  if (exchanges_lists(plan)) sizes.weights = unit_weights(work);
  sizes.buckets = bucket_counts(sizes, model, plan);
  const std::int64_t rows = (model.vocab + plan.tp - 1) / plan.tp;
  sizes.tied_bytes = static_cast<double>(rows * model.hidden) * gradient_wire_bytes(plan);
  return sizes;
}

std::vector<Collective> messages_of(const MessageSizes& sizes, const Plan& plan, const SentBy& op) {
  const auto stage = static_cast<std::size_t>(op.stage);
  const auto gradients = [&] { return moved(sizes, op, sizes.gradient_bytes, sizes.expert_gradient_bytes); };
  const auto parameters = [&] {
    return moved(sizes, op, sizes.parameter_bytes, sizes.expert_parameter_bytes);
  };
  // Experts without replicas move none.
  const auto shared = [&](Moved bytes) {
    if (plan.edp() == 1) bytes.experts = 0;
    return bytes;
  };
  const auto stepped = [&](const Moved& bytes) {
    return bytes.dense * stepped_share(sizes, plan, stage) + bytes.experts / expert_shard_size(plan);
  };
  switch (op.kind) {
    case OpKind::send_forward:
    case OpKind::recv_forward:
    case OpKind::send_backward:
    case OpKind::recv_backward:
      return {{CollectiveOp::send_receive, CommGroup::pipeline, sizes.boundary_bytes}};
    case OpKind::unshard:
      return over_replicas(sizes, plan, op, CollectiveOp::all_gather, shared(parameters()));
    case OpKind::reduce_grad:
      return over_replicas(sizes, plan, op,
                           scatters_gradients(plan) ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
                           shared(gradients()));
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

namespace {

// Lists the messages of a step.
class Listing {
 public:
  Listing(const Work& work, const Model& model, const Plan& plan, std::vector<double> saved_bytes)
      : work_(work),
        plan_(plan),
        sizes_(message_sizes(work, model, plan, std::move(saved_bytes))),
        groups_(plan),
        ties_(model.shares_embedding()) {}

  std::vector<StepMessage> run() {
    for (int stage = 0; stage < plan_.stages(); ++stage) {
      passes(stage);
      between_stages(stage);
      of_state(stage);
      if (plan_.offload == Offload::activations && !sizes_.saved_bytes.empty())
        for (const OpKind kind : {OpKind::offload, OpKind::reload}) ops(kind, stage, 1);
    }
    Block scratch;
    kernels(OpKind::step, 0,
            plan_.offload == Offload::optimizer ? clipping_kernels(1, plan_, scratch)
                                                : optimizer_kernels(1, plan_, scratch),
            1);
    return std::move(messages_);
  }

 private:
  void passes(int stage) {
    if (work_.receives_activation(stage)) kernels(OpKind::forward, stage, work_.arrival.forward, 1);
    if (work_.receives_gradient(stage)) kernels(OpKind::backward_input, stage, work_.arrival.forward, 1);
    for (const Repeated& part : work_.parts[static_cast<std::size_t>(stage)]) {
      const Block& block = work_.blocks[static_cast<std::size_t>(part.block)];
      kernels(OpKind::forward, stage, block.forward, part.repeats);
      kernels(OpKind::backward_input, stage, block.recompute, part.repeats);
      kernels(OpKind::backward_input, stage, block.backward_input, part.repeats);
      kernels(OpKind::backward_weight, stage, block.backward_weight, part.repeats);
    }
  }

  void kernels(OpKind kind, int stage, const std::vector<Kernel>& kernels, std::int64_t repeats) {
    for (const Kernel& kernel : kernels) {
      const auto* collective = std::get_if<Collective>(&kernel.what);
      if (collective == nullptr) continue;
      Collective what = *collective;
      what.calls *= repeats;
      add({kind, stage, what});
    }
  }

  void between_stages(int stage) {
    const auto rank = [this](int of) { return pipeline_rank_of(of, plan_); };
    const int last = plan_.stages() - 1;
    if (stage < last && rank(stage) != rank(stage + 1)) ops(OpKind::send_forward, stage, 1);
    if (stage > 0 && rank(stage) != rank(stage - 1)) ops(OpKind::send_backward, stage, 1);
    if (ties_ && (stage == 0 || stage == last)) ops(OpKind::reduce_tied, stage, 1);
  }

  void of_state(int stage) {
    const int buckets = sizes_.buckets[static_cast<std::size_t>(stage)];
    const int reduced = plan_.overlap_grad_reduce ? buckets : 1;
    ops(OpKind::reduce_grad, stage, reduced);
    ops(OpKind::reduce_replicas, stage, reduced);
    if (plan_.zero > 0) ops(OpKind::unshard, stage, gathers_by_unit(plan_) ? buckets : 1);
    if (plan_.offload != Offload::optimizer) return;
    ops(OpKind::offload_grad, stage, reduced);
    ops(OpKind::reload_param, stage, 1);
  }

  void ops(OpKind kind, int stage, int parts) {
    for (int part = 0; part < parts; ++part)
      for (const Collective& what : messages_of(sizes_, plan_, {kind, stage, part, parts}))
        add({kind, stage, what});
  }

  // Calls of one size are one entry.
  void add(const StepMessage& message) {
    const Collective& what = message.what;
    if (what.calls == 0 || !has_peers(what.group)) return;
    if (!messages_.empty() && message.kind == messages_.back().kind &&
        message.stage == messages_.back().stage && what.op == messages_.back().what.op &&
        what.group == messages_.back().what.group && what.bytes == messages_.back().what.bytes)
      messages_.back().what.calls += what.calls;
    else
      messages_.push_back(message);
  }

  bool has_peers(CommGroup group) {
    const auto [known, is_new] = has_peers_.try_emplace(group, group == CommGroup::host);
    if (is_new && !known->second) known->second = groups_.ranks(group, 0).size() > 1;
    return known->second;
  }

  const Work& work_;
  const Plan& plan_;
  MessageSizes sizes_;
  CommGroups groups_;
  bool ties_;
  std::map<CommGroup, bool> has_peers_;
  std::vector<StepMessage> messages_;
};

}  // namespace

std::vector<StepMessage> step_messages(const Work& work, const Model& model, const Plan& plan,
                                       std::vector<double> saved_bytes) {
  return Listing(work, model, plan, std::move(saved_bytes)).run();
}

}  // namespace rehearse
