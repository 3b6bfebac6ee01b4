// Which kinds of ops does a step consist of, and on which stream does each run?
#pragma once

#include <cstdint>

namespace rehearse {

// Names follow PyTorch's pipelining actions (torch.distributed.pipelining): F, B, I, W, SEND_F, ...
enum class OpKind : std::uint8_t {
  forward,          // F
  backward,         // B: input and weight gradients
  backward_input,   // I
  backward_weight,  // W
  send_forward,     // SEND_F: activation to the next stage
  recv_forward,     // RECV_F: activation from the previous stage
  send_backward,    // SEND_B: gradient to the previous stage
  recv_backward,    // RECV_B: gradient from the next stage
  offload,          // OFFLOAD: saved activations to the host
  reload,           // RELOAD: and back
  unshard,      // UNSHARD: parameters gathered from the ranks that divide them; part = unit, in model order
  reshard,      // RESHARD: gathered parameters are dropped
  reduce_grad,  // REDUCE_GRAD: gradients summed over data-parallel replicas; part = bucket
  reduce_replicas,  // REDUCE_REPLICAS: gradient shards summed over sharding groups
  offload_grad,     // OFFLOAD_GRAD: gradients to the host
  reload_param,     // RELOAD_PARAM: stepped parameters back from the host
  reduce_tied,      // REDUCE_TIED: gradient of the shared embedding summed over first and last stage
  step,             // STEP: optimizer
};
inline constexpr int kOpKinds = 18;

// Ops of one stream run in issue order. Each stream is a CUDA stream. The four pipeline streams separate the
// two directions to each neighbour, as NCCL's point-to-point channels do.
enum class Stream : std::uint8_t {
  compute,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  gradient,
  parameter,
  to_host,
  from_host
};
inline constexpr int kStreams = 9;

inline bool is_compute(OpKind kind) {
  return kind <= OpKind::backward_weight;
}
// B or I: takes the gradient of the stage's output.
inline bool begins_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_input;
}
// B or W: the weight gradients of a microbatch are complete after it.
inline bool completes_gradient(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_weight;
}
inline bool is_send(OpKind kind) {
  return kind == OpKind::send_forward || kind == OpKind::send_backward;
}
inline bool is_receive(OpKind kind) {
  return kind == OpKind::recv_forward || kind == OpKind::recv_backward;
}
// Copies between the GPU and its host.
inline bool is_host_copy(OpKind kind) {
  return kind == OpKind::offload || kind == OpKind::reload || kind == OpKind::offload_grad ||
         kind == OpKind::reload_param;
}
inline bool has_microbatch(OpKind kind) {
  return kind <= OpKind::reload;
}

// Position in model order of the unit that part `part` of `parts` of an op computes, gathers, drops or
// reduces. Ops of the backward pass begin with the last unit.
constexpr int unit_of(OpKind kind, int part, int parts) {
  const bool in_model_order = kind == OpKind::forward || kind == OpKind::unshard || kind == OpKind::reshard;
  return in_model_order ? part : parts - 1 - part;
}

// The stream that ops of a kind run on.
Stream stream_of(OpKind kind);

}  // namespace rehearse
