// Which types of kernels exist, and which of them can be priced, timed and executed?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace rehearse {

// The types of kernels that are bound by memory: each reads and writes its tensors once.
enum class Pointwise : std::uint8_t {
  norm,  // RMSNorm
  norm_backward,
  norm_weight_gradient,
  layer_norm,
  layer_norm_backward,
  layer_norm_weight_gradient,
  plain_norm,  // LayerNorm without a weight
  plain_norm_backward,
  rotary,
  rotary_backward,
  latent_rotary,  // of latent attention, which joins heads from their parts
  latent_rotary_backward,
  activation,
  activation_backward,
  varying_activation,  // of a varying number of rows: torch.compile's kernels for dynamic shapes
  varying_activation_backward,
  dropout,  // of rows, with the residual sum where there is one
  dropout_backward,
  score_dropout,  // of attention's probabilities
  score_dropout_backward,
  add,
  add_partials,       // of all ranks, as they arrived
  ring_merge,         // a step's output into that of ring attention
  ring_gradient_sum,  // a step's gradients into those of ring attention
  softmax,
  softmax_backward,
  causal_softmax,  // reads no score above the diagonal: half of its tensors
  causal_softmax_backward,
  top_k,  // of a router
  top_k_backward,
  embedding,
  embedding_backward,
  positions,  // learned ones, added
  positions_backward,
  permute,         // rows to the order of their experts
  unpermute,       // back, each token's rows added up
  copy_visitors,   // rows that came once, to each expert of the rank that they are for
  sum_visitors,    // back, added up
  spread_rows,     // HybridEP's: a row to each expert of the rank that a map names
  collect_rows,    // the same back, added up
  scatter_add,     // rows of a token added up in memory, one at a time
  reorder,         // blocks of rows change places
  rows_by_expert,  // rows from rank after rank, to the order of experts
  rows_by_source,  // back
  repeat_heads,    // keys or values for each head of queries
  sum_repeated_heads,
  order_by_sequence,  // of chunks from rank after rank
  order_by_rank,      // back
  join_columns,       // two tensors beside each other
  part_columns,       // back
  join_shards,        // the columns of all ranks beside each other
  own_shard,          // this rank's columns
  ring_pack,          // keys and values in one tensor
  ring_join,          // a step's gradients of keys and values in one tensor
  rearrange,  // tensors read and written once more, listed twice among its reads: a bias added, or the
              // dimensions of a tensor reordered, in passes that kernels of `execute` do not need
  cross_entropy,
  cross_entropy_backward,
  widen_logits,
  narrow_logits,  // their gradient
  loss_maximum,
  loss_shift,
  loss_exponentials,
  loss_sum,
  loss,  // of sums over the ranks of the vocabulary
  loss_backward,
  loss_part,  // of the gradient, which one kernel of `execute` makes as a whole
  log_softmax,
  log_softmax_backward,
  likelihood_backward,
  token_loss,  // of whole rows, fused
  token_loss_backward,
  bias_gradient,
  sinks_gradient,   // read with the scores
  count_choices,    // of experts: the "gradient" of a router's bias
  accumulate_sums,  // of parameters, that another kernel summed up over a microbatch
  convolution,      // along each sequence, of a few tokens, and its activation
  convolution_backward,
  adam,
  quantize,         // into fp8, by rows, by columns or both
  quantize_blocks,  // the same with a scale for each 32 elements (MXFP8)
  quantize_heads,   // queries, keys and values in one kernel
  quantize_head_blocks,
  quantize_fp4,            // into fp4 with a scale for each 16 (NVFP4)
  quantize_fp4_at_random,  // the same rounded up or down at random, as gradients are
  find_maximum,            // of a tensor that is quantized by it
  find_row_maxima,
  find_maxima_fp4,
  square_sum,
  clip_scale,
  eager,  // one operation of eager PyTorch, where kernels are not fused
};

// The type whose stream in a profile prices this type: "top_k" streams as "softmax" does.
Pointwise stream_of(Pointwise type);
std::string to_string(Pointwise type);

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_receive,
  dispatch,  // rows to their experts, once to each rank (Dispatcher)
  combine    // each rank's sum of its experts' outputs for a row, back to the row's rank
};

std::string to_string(CollectiveOp op);  // "all_reduce"

// Support for a type of kernel. Every type can be priced. `timed`: calibrate times it, with a kernel of ours.
// `executed`: it runs in a training step.
struct KernelSupport {
  std::string type;
  std::string stream;  // of a profile, whose samples price it; empty: other tables do
  bool priced = true, timed = false, executed = false;
  bool imported = false;  // instead of timed: a profile has samples of other programs' kernels
};

KernelSupport support_of(Pointwise type);
KernelSupport support_of(CollectiveOp op);
KernelSupport support_of_gemm(Precision operands);

// All types, in the order of their declaration: GEMMs by precision, attention, scans, the pointwise kernels
// and the collectives.
std::vector<KernelSupport> all_kernel_support();

struct Kernel;
struct Block;
// Support of one kernel of a block, in a plan of `precision`.
KernelSupport support_of(const Block& block, const Kernel& kernel, Precision precision);

}  // namespace rehearse
