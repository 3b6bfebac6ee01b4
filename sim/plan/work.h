// Which kernels does one compute op launch on one rank, on which tensors and with which shapes?
//
// A Work is blocks with repeats. Tensors are named within a block. Price, bytes and lifetimes follow from the
// kernel lists alone. A tensor that a forward kernel makes (or the block receives) and a backward kernel
// reads stays live until then. The split over ranks is Megatron-LM's: Shoeybi et al. 2019 (tensor parallel),
// Korthikanti et al. 2022 (sequence parallel, selective recompute).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/model.h"
#include "plan/comm_group.h"
#include "plan/fanout.h"
#include "plan/graphs.h"
#include "plan/kernel_tensors.h"
#include "plan/kernel_types.h"
#include "plan/plan.h"
#include "plan/stages.h"

namespace rehearse {

enum class TensorRole : std::uint8_t {
  input,       // activation that the block receives
  activation,  // output of a kernel of the block
  parameter,   // weight or bias; its gradient has as many elements and is called NAME_gradient
  tied,        // parameter that another block of the same rank holds
  frozen,      // parameter that is held and not trained: no gradient, no optimizer state
  gradient,    // of an activation or a parameter
  batch,       // token ids and labels: kept by the data loader for the whole step
  state,       // optimizer state
};

// Uses by which code finds a tensor. Names of tensors are for people alone.
enum class TensorUse : std::uint8_t {
  other,
  word_table,
  head_weight,
  head_norm,         // weight of a norm of single heads of queries or keys
  logits,            // output of the head's GEMM
  mask,              // dropout mask, one byte per element
  stepped_gradient,  // read by the optimizer
};

// Bytes of an element in NVFP4: half a byte, and its share of the scale of a block of 16.
inline constexpr double kFp4Bytes = 0.5 + 1.0 / 16;

// How ranks divide a parameter: a matrix of outputs x inputs, or a vector of outputs. Tensor-parallel ranks
// divide it, or for experts the ranks of Plan::etp.
struct RankShare {
  // Rows on this rank, for each part that is divided by itself (queries, keys and values). Empty: not by
  // rows.
  std::vector<std::int64_t> rows = {};
  std::int64_t columns = 0;  // columns on this rank; 0: not by columns
};

struct Tensor {
  std::string name;
  TensorRole role = TensorRole::activation;
  double elements = 0;  // on one rank
  double element_bytes = 2;
  bool of_experts = false;  // a parameter that only replicas of its expert hold: Plan::edp() ranks
  // Of a parameter: number of matrices in it that others keep as separate parameters.
  std::int16_t matrices = 1;
  RankShare share = {};  // of a parameter
  TensorUse use = TensorUse::other;
  double bytes() const { return elements * element_bytes; }
};

// The purpose of a GEMM. Frameworks keep weights as (n,k), so the purpose gives the layout: BLAS's TN, NN and
// NT.
enum class GemmPass : std::uint8_t { forward, input_gradient, weight_gradient };

// The GEMMs of unfused attention and of its gradients.
enum class AttentionProduct : std::uint8_t {
  none,
  scores,
  query_gradient,
  key_gradient,
  output,
  probability_gradient,
  value_gradient,
};

// C[m,n] = A[m,k] B[k,n], `batch` times: for heads, or for experts of a grouped kernel. FLOPs: 2 m n k batch.
// It reads A, B and the bias, if there is one. Tensors that lie side by side (q, k and v) form one operand.
// With chunks > 1 it runs as that many GEMMs of m / chunks rows, one after the other.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool of_experts = false;  // m counts the busiest rank's rows: Plan::expert_load() times an even share
  std::int64_t chunks = 1;
  GemmPass pass = GemmPass::forward;
  // Bytes moved per element of C; 0: written once, in the operands' precision (fp8: as bf16).
  double result_bytes = 0;
  int sms_left = 0;      // SM margin: multiprocessors left to the collective that overlaps its chunks
  double of_model = 1;   // share of its FLOPs that a model on one rank has; ranks repeat or pad the rest
  TensorId weight = -1;  // weight of the linear layer, in all of its passes; -1: no collective overlaps it
  AttentionProduct attention = AttentionProduct::none;
};

// Type of attention's operands, in the backward pass too.
enum class AttentionOperands : std::uint8_t { activations, fp8, mxfp8 };

// Fused attention of one rank. FLOPs forward: 2 batch heads pairs (head_dim + v_head_dim), where pairs =
// steps query keys, less the squares of keys outside a window (half of that when causal is counted). The
// backward kernel computes the scores again: 5 GEMMs against the forward's 2 (Dao et al. 2022, algorithm 4).
// Ring attention takes `steps` kernels, each on the keys of another rank. Its causal chunks are balanced as
// in Brandon et al. 2023 (striped) and Megatron-LM (first and last half chunks together), so every step fills
// half of its square.
struct Attention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, head_dim = 0, query = 0, keys = 0;
  bool causal = true;
  bool backward = false;
  std::int64_t v_head_dim = 0;  // 0: head_dim
  std::int64_t window = 0;      // keys that a query sees, itself included; 0: all earlier keys
  std::int64_t steps = 1;
  AttentionOperands operands = AttentionOperands::activations;
};

// The scan of a state space over the sequences of one rank in chunks (Dao and Gu 2024, section 6). It
// computes scores of each group and chunk, and states of head_dim x state at the end of every chunk, which go
// to the next chunk. Outputs follow from both. FLOPs forward, squares of chunks counted in full: 2 tokens
// (chunk (groups state + heads head_dim) + 2 heads head_dim state). The backward kernels recompute scores and
// states.
struct Scan {
  std::int64_t tokens = 0, heads = 0, head_dim = 0, groups = 0, state = 0, chunk = 0;
  bool backward = false;
  bool of_linear_attention = false;  // its kernels keep no scores: they move only their tensors
};

// How a collective treats its tensors, where its op does not decide that.
enum class Exchange : std::uint8_t {
  plain,
  maximum,         // all-reduce: the maximum, not the sum
  partial_sums,    // sends round a ring: partial sums, which the receiver adds up
  rows_for_heads,  // all-to-all: a rank sends rows of all heads and receives all rows of its heads
  heads_for_rows,  // the reverse of rows_for_heads
};

// `bytes` is the full buffer of one call, which nccl-tests calls size.
struct Collective {
  CollectiveOp op = CollectiveOp::all_reduce;
  CommGroup group = CommGroup::tensor;
  double bytes = 0;
  std::int64_t calls = 1;
  Fanout fanout = {};  // dispatch and combine, whose bytes are those of the rows that visit a rank
  double weights = 0;  // router weights sent with those rows: rows x choices of each
  Exchange exchange = Exchange::plain;
};

// Does a library other than NCCL run the op?
constexpr bool is_row_exchange(CollectiveOp op) {
  return op == CollectiveOp::dispatch || op == CollectiveOp::combine;
}

// A collective overlaps other kernels of its block: call by call beside chunk by chunk (or ring step by ring
// step). Of each call, only the time beyond its chunk is exposed. The last `exposed_calls` calls are exposed
// in full.
struct Overlap {
  // The GEMMs of these weights in this pass, whose chunks alternate with the calls. In the other half of the
  // backward pass, the collective overlaps in op B only.
  std::vector<TensorId> weights = {};
  GemmPass pass = GemmPass::forward;
  bool attention = false;  // the steps of attention, in place of `weights`
  std::int64_t exposed_calls = 0;
};

// The type of a kernel and the slots of its tensors identify it. Its name is for people and decides nothing.
struct Kernel {
  std::string name;  // unique within its list, e.g. "qkv"
  std::variant<Gemm, Attention, Scan, Pointwise, Collective> what;
  KernelTensors reads;
  KernelTensors writes;
  Overlap overlap = {};
  bool host_waits = false;  // the host waits for its outputs before it launches the next kernel
  LayerPart part = LayerPart::none;
  std::int64_t launches = 1;  // host launches: Transformer Engine multiplies and quantizes expert by expert
  std::int64_t width = 0;     // norms and activations: elements of a row that are processed together
  bool unmeasured = false;    // such a kernel was never timed: its time follows from FLOPs and bytes alone
};

// Does the collective overlap the other kernel?
bool runs_beside(const Kernel& collective, const Kernel& other);

// Is it a pointwise kernel of one of these types?
template <typename... Types>
bool is_one_of(const Kernel& kernel, Types... types) {
  const auto* type = std::get_if<Pointwise>(&kernel.what);
  return type != nullptr && ((*type == types) || ...);
}

// Number of pieces in which a GEMM or attention runs, one after the other.
std::int64_t chunks_of(const Kernel& kernel);

// FLOPs by the formula of the kernel's struct, counting full squares.
double flops(const Attention& attention);
double flops(const Scan& scan);

// Executed FLOPs of a GEMM, attention or scan; 0 for other kernels. Causal attention counts full squares.
double flops(const Kernel& kernel);

enum class BlockRole : std::uint8_t {
  tower,  // patches, layers and projectors of a tower, ahead of the embedding
  embedding,
  layer,
  module,  // a multi-token prediction (MTP) layer
  head,
  arrival,   // arrival of a message from another stage
  optimizer  // the optimizer step
};

// A piece of the network. Its kernel lists are given once and repeated.
struct Block {
  BlockRole role = BlockRole::layer;
  // A name for people:
  // - "embedding", "layer", "sparse_layer", "full_layer" (no window);
  // - in hybrid models "mamba_layer", "attention_layer", "mlp_layer", "expert_layer";
  // - any of these after "bf16_" or "tower_";
  // - "mtp", "further_mtp", "head".
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Kernel> forward;
  std::vector<Kernel> recompute;        // forward kernels recomputed at the start of the backward pass
  std::vector<Kernel> backward_input;   // gradients of activations: op I
  std::vector<Kernel> backward_weight;  // gradients of parameters: op W; op B is I then W
  std::vector<TensorId> saved;          // tensors kept from forward to backward: derived by derive_saved()

  // `recompute` runs together with the previous block's, which makes `input`: `input` is not saved.
  bool joins_previous = false;

  // Tensors that join blocks; -1: none (the embedding receives no activation, the head passes none on).
  TensorId input = -1, output = -1, output_gradient = -1, input_gradient = -1;

  double bytes(const std::vector<TensorId>& ids) const;
  // Bytes read and written. Of a table, only the rows that are looked up count. PyTorch makes a table's
  // gradient whole, in the type of the rows' gradient. It then adds it to a gradient kept in another type
  // (aten/src/ATen/native/cuda/Embedding.cu).
  double bytes_moved(const Kernel& kernel) const;
  double parameters() const;         // elements of tensors with role parameter: those that are trained
  double frozen_parameters() const;  // elements of tensors with role frozen
  double expert_parameters() const;  // the part of them that belongs to routed experts
};

// Activations that a backward kernel or `recompute` reads and that `recompute` does not make, in order of id.
std::vector<TensorId> derive_saved(const Block& block);

struct Repeated {
  int block = 0;  // index into Work::blocks
  std::int64_t repeats = 0;
  bool operator==(const Repeated&) const = default;
};

// All compute of one replica's ranks. `blocks` are shared. parts[s] lists the blocks of stage s, in forward
// order.
struct Work {
  std::vector<Block> blocks;
  std::vector<std::vector<Repeated>> parts;

  // Elements on one rank of the stage:
  // - Every tensor-parallel rank holds the norms, the biases of row-parallel layers and learned positions in
  //   full.
  // - It has kv_heads / tp, but at least one key and value head.
  // - A tied head counts its copy of the table where it is not on the embedding's rank (pp > 1).
  // The gradients of parameters that all tensor-parallel ranks hold are summed once a step. The kernels
  // listed here do not include that sum.
  double parameters(int stage) const;
  double frozen_parameters(int stage) const;
  double expert_parameters(int stage) const;  // the part of them that Plan::edp() ranks hold in common
  double saved_bytes(int stage) const;  // bytes that the forward of one microbatch keeps for its backward
  double boundary_bytes = 0;            // bytes passed from stage to stage, on one rank

  // Its forward kernels run on a message from another stage, before the stage's own kernels. The message is
  // an activation or a gradient of one. There are no kernels where messages arrive whole.
  Block arrival;
  bool receives_activation(int stage) const { return stage > 0; }
  bool receives_gradient(int stage) const { return stage + 1 < static_cast<int>(parts.size()); }
};

// The work of a legal plan (broken_rules() empty).
Work make_work(const Model& model, const Plan& plan);

// The kernels of the optimizer step over `parameters` elements of one rank. Their tensors are added to
// `scratch`. Adam is the last kernel, fused unless the plan says otherwise. It reads gradient, two moments
// and master weight (the weight itself where there is none). It writes all of them but the gradient, in the
// bytes of the plan's recipe. With Plan::clip_grad, the squares of gradients are summed over all ranks before
// Adam (Pascanu et al. 2013, algorithm 1), and Adam reads the scale that follows. Without Plan::fused_step,
// separate passes over memory copy gradients to fp32, unscale them (fp16) and clip them before Adam. Another
// pass copies the master weights after it.
std::vector<Kernel> optimizer_kernels(double parameters, const Plan& plan, Block& scratch);

// The optimizer kernels that the GPU runs where Adam runs on the host: the sum of squares, if gradients are
// clipped.
std::vector<Kernel> clipping_kernels(double parameters, const Plan& plan, Block& scratch);

// FLOPs of one microbatch, summed over all ranks of one replica, with evenly loaded experts. `backward` is
// twice the forward. Only hardware FLOPs include the next two. `rescore`: recomputation inside the backward
// kernels of fused attention and scans. `repeated`: FLOPs that tensor-parallel ranks repeat and pad in both
// passes.
struct FlopCount {
  double forward = 0, recompute = 0, backward = 0, rescore = 0, repeated = 0;
  double model() const { return forward + backward; }
  double hardware() const { return forward + recompute + backward + rescore + repeated; }
};
FlopCount count_flops(const Work& work, const Plan& plan);

}  // namespace rehearse
