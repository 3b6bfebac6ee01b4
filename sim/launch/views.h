// How does a kernel see the tensors that it reads and writes?
#pragma once

#include "launch/calls.h"

namespace rehearse {

// One kernel of a bound block.
struct Launch {
  const BoundBlock& bound;
  const Kernel& kernel;

  const Tensor& tensor(TensorId id) const { return bound.block.tensors[static_cast<std::size_t>(id)]; }
  std::int64_t elements(TensorId id) const { return static_cast<std::int64_t>(tensor(id).elements); }

  // The tensor as `count` rows. A tensor in a shared matrix has that matrix's rows.
  kernels::Tensor rows(TensorId id, std::int64_t count) const;
  // Elements from `first` on of a tensor with a matrix of its own, as height x width.
  kernels::Tensor part(TensorId id, std::int64_t first, std::int64_t height, std::int64_t width) const;
  kernels::Tensor whole(TensorId id) const { return part(id, 0, 1, elements(id)); }
  kernels::Tensor integers(TensorId id, std::int64_t height) const;  // a tensor of int32

  kernels::Tensor read(std::size_t i, std::int64_t count) const { return rows(kernel.reads.at(i), count); }
  kernels::Tensor write(std::size_t i, std::int64_t count) const { return rows(kernel.writes.at(i), count); }
  // The tensor in a slot, as rows or as one row. Not given where the slot is empty.
  kernels::Tensor read_in(Slot slot, std::int64_t count) const { return rows_in(kernel.reads, slot, count); }
  kernels::Tensor write_in(Slot slot, std::int64_t count) const {
    return rows_in(kernel.writes, slot, count);
  }
  kernels::Tensor whole_read(Slot slot) const { return whole_in(kernel.reads, slot); }
  kernels::Tensor whole_write(Slot slot) const { return whole_in(kernel.writes, slot); }

  std::int64_t first_column(TensorId id) const {
    return bound.places[static_cast<std::size_t>(id)].first_column;
  }
  // Two tensors that are side by side, as one, or only the first.
  kernels::Tensor with_neighbour(const std::vector<TensorId>& ids, std::size_t i, std::int64_t count) const;

  bool multiplies_quantized() const {
    return rehearse::multiplies_quantized(bound.block, kernel, bound.plan.precision);
  }

  kernels::Tokens tokens() const;  // of this rank's microbatch
  // Positions in the sequence of `count` places from `first` on, counted over all context-parallel ranks. Not
  // given without context parallelism.
  kernels::Tensor positions(std::int64_t first, std::int64_t count) const {
    return bound.positions.given() ? bound.positions.slice(first, count) : kernels::Tensor();
  }
  std::int64_t first_place() const { return bound.context_rank * bound.shape.seq; }

 private:
  kernels::Tensor rows_in(const KernelTensors& tensors, Slot slot, std::int64_t count) const {
    return tensors.has(slot) ? rows(tensors.in(slot), count) : kernels::Tensor();
  }
  kernels::Tensor whole_in(const KernelTensors& tensors, Slot slot) const {
    return tensors.has(slot) ? whole(tensors.in(slot)) : kernels::Tensor();
  }
};

using Calls = std::vector<kernels::Call>;

Calls multiply_calls(const Launch& launch, const Gemm& gemm);
// Unfused attention's scores, weighted values and their gradients.
Calls unfused_core_calls(const Launch& launch, AttentionProduct what);
Calls attention_calls(const Launch& launch, const Attention& attention);
Calls pointwise_calls(const Launch& launch, Pointwise type);
Calls moving_calls(const Launch& launch, Pointwise type);
Calls rotary_calls(const Launch& launch, bool back);
Calls latent_rotary_calls(const Launch& launch, bool back);
Calls permute_calls(const Launch& launch);
Calls unpermute_calls(const Launch& launch);
Calls sort_calls(const Launch& launch, bool by_expert);
Calls repeat_calls(const Launch& launch);  // heads that a group of queries shares
Calls sum_repeated_calls(const Launch& launch);
Calls loss_calls(const Launch& launch, Pointwise type);
Calls top_k_calls(const Launch& launch);
Calls top_k_backward_calls(const Launch& launch);
// Sizes of the parts of the channels that a tensor-parallel rank of a state space convolves. They are its
// input, the map to states, and the map from states to the output.
std::vector<std::int64_t> parts_of_channels(const Launch& launch);
Calls convolution_calls(const Launch& launch);
Calls convolution_backward_calls(const Launch& launch);
Calls scan_calls(const Launch& launch);
Calls scan_backward_calls(const Launch& launch);
// Calls of an MTP layer: they join and separate the embedding and the hidden state.
Calls join_columns_calls(const Launch& launch);
Calls part_columns_calls(const Launch& launch);
Calls join_shards_calls(const Launch& launch);
Calls own_shard_calls(const Launch& launch);
Calls order_calls(const Launch& launch, bool by_sequence);  // of chunks of sequences
Calls added_sums_calls(const Launch& launch);               // of parameters of a state space
// Calls of a ring: they pack, join and sum.
Calls ring_pack_calls(const Launch& launch);
Calls ring_join_calls(const Launch& launch);
Calls ring_merge_calls(const Launch& launch);
Calls ring_gradient_sum_calls(const Launch& launch);

}  // namespace rehearse
