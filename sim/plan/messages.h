// Which messages does a step send, between which ranks, of how many bytes?
//
// Messages between the kernels of a pass are kernels of the Work themselves. The others are ops: activations
// between stages, sums of gradients, gathers of parameters, copies to the host. This is the only place that
// knows both.
#pragma once

#include <vector>

#include "plan/op_kind.h"
#include "plan/weights.h"
#include "plan/work.h"

namespace rehearse {

// Bytes on one rank that the messages between passes carry, by stage.
struct MessageSizes {
  double boundary_bytes = 0;                       // activation or its gradient between two stages
  std::vector<double> gradient_bytes;              // of parameters outside experts
  double tied_bytes = 0;                           // gradient of the shared embedding
  std::vector<double> expert_gradient_bytes = {};  // empty: no experts
  std::vector<double> parameter_bytes = {};        // gathered; the same two kinds
  std::vector<double> expert_parameter_bytes = {};
  // Frozen parameters, gathered with ZeRO-3 for the forward pass alone; empty: none are frozen.
  std::vector<double> frozen_bytes = {};
  std::vector<double> saved_bytes = {};  // activations that one microbatch offloads
  std::vector<int> buckets = {};         // parts of the gradients; each is reduced while others are computed
  // By unit: its share of the stage's parameters. Empty: parts are equal.
  std::vector<std::vector<double>> units = {};
  std::vector<std::vector<double>> expert_units = {};
  std::vector<std::vector<double>> frozen_units = {};
  // By unit, where each weight is gathered as a list of its own (exchanges_lists()).
  std::vector<std::vector<Weights>> weights = {};
  std::vector<std::vector<double>> owned_bytes = {};  // by owner (owns_parameters()); empty: none
};
// `saved_bytes`: offloaded_bytes() where the plan offloads activations.
MessageSizes message_sizes(const Work& work, const Model& model, const Plan& plan,
                           std::vector<double> saved_bytes = {});

// An op, with the part of it. `for_backward`: a gather for a backward pass, whose recompute may drop weights.
struct SentBy {
  OpKind kind = OpKind::step;
  int stage = 0;
  int part = 0;
  int parts = 1;
  bool for_backward = false;
};

// The reduction of gradients over the ranks that hold each other's shards.
CollectiveOp gradient_reduction(const Plan& plan);

// The messages of one op, one after the other; none of a compute op.
std::vector<Collective> messages_of(const MessageSizes& sizes, const Plan& plan, const SentBy& op);

// A message of an op, which runs on stream_of(kind). `what.calls` counts one pass through the stage. The
// schedule decides how many passes a step has.
struct StepMessage {
  OpKind kind = OpKind::step;
  int stage = 0;
  Collective what;
};

// Every message of a step, by stage. `saved_bytes`: as message_sizes(). Groups of one rank send none.
std::vector<StepMessage> step_messages(const Work& work, const Model& model, const Plan& plan,
                                       std::vector<double> saved_bytes = {});

}  // namespace rehearse
