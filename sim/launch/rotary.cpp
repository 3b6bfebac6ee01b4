#include "launch/views.h"

namespace rehearse {

// {query, shared key, keys and values} to {query, key, value}; in the backward pass, their gradients back.
Calls latent_rotary_calls(const Launch& launch, bool back) {
  const LatentAttention& latent = *launch.bound.model.latent;
  const std::int64_t rows = launch.bound.shape.tokens;
  const kernels::LatentHeads heads{launch.tokens(), launch.bound.shape.heads, latent.nope_head_dim,
                                   latent.rope_head_dim, latent.v_head_dim};
  const auto in = [&](std::size_t i) { return launch.read(i, rows); };
  const auto out = [&](std::size_t i) { return launch.write(i, rows); };
  if (back) return {kernels::LatentRotaryBackward{heads, in(0), in(1), in(2), out(0), out(1), out(2)}};
  return {kernels::LatentRotary{heads, in(0), in(1), in(2), out(0), out(1), out(2)}};
}

Calls rotary_calls(const Launch& launch, bool back) {
  const Shape& shape = launch.bound.shape;
  kernels::Rotary call;
  call.tokens = launch.tokens();
  call.heads = shape.heads;
  call.kv_heads = shape.kv_heads;
  call.back = back;
  call.query = launch.read(0, shape.tokens);
  call.key = launch.read(1, shape.tokens);
  call.query_output = launch.write(0, shape.tokens);
  call.key_output = launch.write(1, shape.tokens);
  return {call};
}

}  // namespace rehearse
