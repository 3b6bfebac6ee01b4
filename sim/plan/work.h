// Which kernels one compute op launches on one rank, on which tensors, with which shapes.
//
// A Work is blocks with repeats. Tensors are named within a block; price, bytes and lifetimes follow from the
// kernel lists alone: a tensor that a forward kernel makes (or the block receives) and a backward kernel
// reads must stay until then.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "plan/stages.h"

namespace rehearse {

using TensorId = std::int16_t;  // index into Block::tensors

enum class TensorRole : std::uint8_t {
  input,       // activation that the block receives
  activation,  // made by a kernel of the block
  parameter,   // weight or bias; its gradient has as many elements
  gradient,    // of an activation or a parameter
};

struct Tensor {
  std::string name;
  TensorRole role = TensorRole::activation;
  double elements = 0;  // on one rank
  double element_bytes = 2;
  double bytes() const { return elements * element_bytes; }
};

// C[m,n] = A[m,k] B[k,n], `batch` times. FLOPs: 2 m n k batch.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
};

// Fused attention of one rank. FLOPs forward: 4 batch heads q kv head_dim (half of that when causal is
// counted).
struct Attention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, head_dim = 0, query = 0, keys = 0;
  bool causal = true;
  bool backward = false;
};

// A kernel bound by memory: it reads and writes its tensors once.
enum class Pointwise : std::uint8_t {
  norm,
  norm_backward,
  rotary,
  activation,
  activation_backward,
  dropout,
  add,
  softmax,
  softmax_backward,
  embedding,
  embedding_backward,
  cross_entropy,
  cross_entropy_backward,
  bias_gradient,
  adam,
};

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_receive
};

// A collective over the group along `axis`. `bytes` is the full buffer: what nccl-tests calls size.
struct Collective {
  CollectiveOp op = CollectiveOp::all_reduce;
  Axis axis = Axis::tp;
  double bytes = 0;
};

struct Kernel {
  std::string name;  // unique within its list, e.g. "qkv"
  std::variant<Gemm, Attention, Pointwise, Collective> what;
  std::vector<TensorId> reads;
  std::vector<TensorId> writes;
};

double flops(
    const Kernel& kernel);  // of GEMM and attention; 0 for the others. Causal attention counts full squares.

// A piece of the network whose kernel lists are given once and repeated.
struct Block {
  std::string name;  // "embedding", "layer", "head"
  std::vector<Tensor> tensors;
  std::vector<Kernel> forward;
  std::vector<Kernel> recompute;        // forward kernels run again at the start of the backward pass
  std::vector<Kernel> backward_input;   // gradients of activations: op I
  std::vector<Kernel> backward_weight;  // gradients of parameters: op W; op B is I then W
  std::vector<TensorId> saved;          // what stays from forward to backward: derived by derive_saved()

  double bytes(const std::vector<TensorId>& ids) const;
  double parameters() const;  // elements of role parameter
};

struct Repeated {
  int block = 0;  // index into Work::blocks
  std::int64_t repeats = 0;
};

// Everything that one replica's ranks compute. blocks are shared; parts[s] lists what stage s runs, in
// forward order.
struct Work {
  std::vector<Block> blocks;
  std::vector<std::vector<Repeated>> parts;

  double parameters(int stage) const;   // elements on one rank of the stage
  double saved_bytes(int stage) const;  // bytes that one microbatch's forward leaves for its backward
  double boundary_bytes = 0;            // the activation that passes from stage to stage, on one rank
};

// The work of a legal plan (broken_rules() empty). Sparse layers and latent attention are refused with an
// InputError.
Work make_work(const Model& model, const Plan& plan);

// Fused optimizer step over `parameters` elements of one rank: Adam reading gradient, two moments and master
// weight.
Kernel optimizer_kernel(double parameters, const Plan& plan, Block& scratch);

// FLOPs of one microbatch summed over all ranks of one replica: {forward, recompute, backward}.
struct FlopCount {
  double forward = 0, recompute = 0, backward = 0;
  double model() const { return forward + backward; }
  double hardware() const { return forward + recompute + backward; }
};
FlopCount count_flops(const Work& work, const Plan& plan);

}  // namespace rehearse
