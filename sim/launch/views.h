// How does a kernel see the tensors that it reads and writes?
#pragma once

#include "launch/calls.h"

namespace rehearse {

// One kernel of a bound block.
struct Launch {
  const BoundBlock& bound;
  const Kernel& kernel;
  Phase phase;

  const Tensor& tensor(TensorId id) const { return bound.block.tensors[static_cast<std::size_t>(id)]; }
  std::int64_t elements(TensorId id) const { return static_cast<std::int64_t>(tensor(id).elements); }

  // As `rows` rows; a tensor in a shared matrix has that matrix's rows.
  kernels::Tensor rows(TensorId id, std::int64_t count) const;
  // Elements `first` .. of a tensor with a matrix of its own, as height x width.
  kernels::Tensor part(TensorId id, std::int64_t first, std::int64_t height, std::int64_t width) const;
  kernels::Tensor whole(TensorId id) const { return part(id, 0, 1, elements(id)); }
  kernels::Tensor integers(TensorId id, std::int64_t height) const;  // a tensor of int32

  kernels::Tensor read(std::size_t i, std::int64_t count) const { return rows(kernel.reads.at(i), count); }
  kernels::Tensor write(std::size_t i, std::int64_t count) const { return rows(kernel.writes.at(i), count); }
  bool reads_more_than(std::size_t count) const { return kernel.reads.size() > count; }

  std::int64_t first_column(TensorId id) const {
    return bound.places[static_cast<std::size_t>(id)].first_column;
  }
  // Two tensors that lie side by side, as one; or the first alone.
  kernels::Tensor with_neighbour(const std::vector<TensorId>& ids, std::size_t i, std::int64_t count) const;

  bool multiplies_quantised() const {
    return rehearse::multiplies_quantised(bound.block, kernel, bound.plan.precision);
  }

  bool named(const std::string& name) const { return kernel.name == name; }
  bool ends_with(const std::string& end) const { return kernel.name.ends_with(end); }
  kernels::Tokens tokens() const;  // of this rank's microbatch
  // Where `count` places from `first` on stand, counted over all context-parallel ranks; not given without.
  kernels::Tensor positions(std::int64_t first, std::int64_t count) const {
    return bound.positions.given() ? bound.positions.slice(first, count) : kernels::Tensor();
  }
  std::int64_t first_place() const { return bound.context_rank * bound.shape.seq; }
};

using Calls = std::vector<kernels::Call>;

Calls multiply_calls(const Launch& launch, const Gemm& gemm);
// Unfused attention's scores, weighted values and their gradients.
bool is_unfused_core(const Launch& launch);
Calls unfused_core_calls(const Launch& launch);
Calls attention_calls(const Launch& launch, const Attention& attention);
Calls pointwise_calls(const Launch& launch, Pointwise kind);
Calls rotary_calls(const Launch& launch);
Calls permute_calls(const Launch& launch);
Calls repeat_calls(const Launch& launch);  // heads that a group of queries shares
Calls loss_calls(const Launch& launch);
Calls loss_backward_calls(const Launch& launch);
Calls choice_calls(const Launch& launch);  // top_k and top_k_backward
// What lies side by side among the channels that a tensor-parallel rank of a state space convolves: its
// input, then what maps it to states, then states to the output.
std::vector<std::int64_t> parts_of_channels(const Launch& launch);
Calls convolution_calls(const Launch& launch);
Calls convolution_backward_calls(const Launch& launch);
Calls scan_calls(const Launch& launch);
Calls scan_backward_calls(const Launch& launch);
Calls module_calls(const Launch& launch);  // what a module of multi-token prediction joins and takes apart
Calls order_calls(const Launch& launch);   // of chunks of sequences
Calls added_sums_calls(const Launch& launch);  // of parameters of a state space
Calls ring_calls(const Launch& launch);        // what a ring packs, joins and adds up

}  // namespace rehearse
