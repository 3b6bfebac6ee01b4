// Which calls of a device does a kernel of a Work stand for?
#pragma once

#include <functional>
#include <vector>

#include "kernels/call.h"
#include "launch/placement.h"
#include "plan/work.h"
#include "plan/work/shape.h"

namespace rehearse {

// The list of a block in which a kernel stands.
enum class Phase : std::uint8_t { forward, recompute, backward_input, backward_weight };

// A block whose tensors have memory.
struct BoundBlock {
  const Block& block;
  const Model& model;
  const Plan& plan;
  Shape shape;
  std::vector<TensorPlace> places;        // by tensor
  std::function<void*(TensorId)> memory;  // of a matrix, by TensorPlace::matrix
  kernels::Tensor rows_of_choices;        // int32 scratch of a sparse layer, one a row sent
  bool experts_in_turn = false;           // tokens visit them in turn, for any scores
  std::int64_t tensor_rank = 0, context_rank = 0;
  std::int64_t first_vocabulary_row = 0;  // of this rank's part
  std::int64_t first_position = 0;        // place of this rank's first row between the GEMMs
  // int32, with context parallelism: places in the sequence of all ranks' tokens, rank after rank.
  kernels::Tensor positions = {};
  float loss_scale = 1;  // of the gradient of every token's loss
  float dropout_rate = 0.1F;
  std::uint64_t seed = 0;           // of this layer's dropout in this step
  std::int64_t first_sequence = 0;  // place of this microbatch's first sequence in the global batch
};

BoundBlock bind_block(const Block& block, const Model& model, const Plan& plan,
                      std::function<void*(TensorId)> memory);

// Does a kernel need BoundBlock::rows_of_choices?
bool sorts_rows(const Kernel& kernel);

// Most rows that a kernel of a sparse layer sorts, in rows of the width that experts read: the size of
// `rows_of_choices`. 0 for other blocks.
std::int64_t rows_sorted(const Block& block, std::int64_t width);

// In order, all on one stream. A GEMM in chunks, or attention in steps, is one call for each. A device has no
// calls for collectives: std::logic_error.
std::vector<kernels::Call> calls_of(const BoundBlock& bound, const Kernel& kernel);

// Adam over the tensors of kernel.reads and writes, in the order of optimizer_kernels(); `step` from 1.
kernels::Adam adam_of(const BoundBlock& scratch, const Kernel& kernel);

}  // namespace rehearse
