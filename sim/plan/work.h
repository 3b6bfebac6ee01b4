// Which kernels one compute op launches on one rank, on which tensors, with which shapes.
//
// A Work is blocks with repeats. Tensors are named within a block; price, bytes and lifetimes follow from the
// kernel lists alone: a tensor that a forward kernel makes (or the block receives) and a backward kernel
// reads must stay until then. The split over ranks is Megatron-LM's: Shoeybi et al. 2019 (tensor parallel),
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
  activation,  // made by a kernel of the block
  parameter,   // weight or bias; its gradient has as many elements and is called NAME_gradient
  tied,        // parameter that another block of the same rank holds
  gradient,    // of an activation or a parameter
  batch,       // token ids and labels: kept by the data loader for the whole step
  state,       // of the optimizer
};

// Tensors that somebody asks for. Their names are for people alone.
enum class TensorUse : std::uint8_t {
  other,
  word_table,
  head_weight,
  head_norm,         // weight of a norm of single heads of queries or keys
  logits,            // as the head's GEMM writes them
  mask,              // of dropout, a byte for each element
  stepped_gradient,  // read by the optimizer
};

// Of an element in NVFP4: half a byte, and its share of the scale of a block of 16.
inline constexpr double kFp4Bytes = 0.5 + 1.0 / 16;

// How ranks share out a parameter, a matrix of outputs x inputs or a vector of outputs: tensor-parallel
// ranks, of experts those of Plan::etp.
struct RankShare {
  // On this rank, part by part, each of which is shared out: queries, keys and values. Empty: not by rows.
  std::vector<std::int64_t> rows = {};
  std::int64_t columns = 0;  // on this rank; 0: not by columns
};

struct Tensor {
  std::string name;
  TensorRole role = TensorRole::activation;
  double elements = 0;  // on one rank
  double element_bytes = 2;
  bool of_experts = false;    // a parameter that only the replicas of its expert hold: Plan::edp() ranks
  std::int16_t matrices = 1;  // of a parameter: how many lie side by side that others keep apart
  RankShare share = {};       // of a parameter
  TensorUse use = TensorUse::other;
  double bytes() const { return elements * element_bytes; }
};

// What a GEMM is for. With weights of (n,k) as frameworks keep them its layout follows: BLAS's TN, NN and
// NT.
enum class GemmPass : std::uint8_t { forward, input_gradient, weight_gradient };

// The GEMMs of attention that is not fused, and of its gradients.
enum class AttentionProduct : std::uint8_t {
  none,
  scores,
  query_gradient,
  key_gradient,
  output,
  probability_gradient,
  value_gradient,
};

// C[m,n] = A[m,k] B[k,n], `batch` times: heads, or experts of a grouped kernel. FLOPs: 2 m n k batch. Reads
// A, B and, where it has one, the bias; tensors that lie side by side (q, k and v) form one operand. With
// chunks > 1 it runs as that many GEMMs of m / chunks rows one after the other.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool of_experts = false;  // m counts the busiest rank's rows: Plan::expert_load() times an even share
  std::int64_t chunks = 1;
  GemmPass pass = GemmPass::forward;
  double result_bytes = 0;  // moved for each element of C; 0: written once as the operands are (fp8: as bf16)
  int sms_left = 0;         // multiprocessors that it does without, for the collective beside its chunks
  double of_model = 1;      // of its FLOPs, those that a model on one rank has: others repeat or pad them
  TensorId weight = -1;     // of the linear layer, in all of its passes; -1: no collective runs beside it
  AttentionProduct attention = AttentionProduct::none;
};

// What attention multiplies, its gradients too.
enum class AttentionOperands : std::uint8_t { activations, fp8, mxfp8 };

// Fused attention of one rank. FLOPs forward: 2 batch heads pairs (head_dim + v_head_dim), where pairs =
// steps query keys, less the squares of keys outside a window (half of that when causal is counted). The
// backward kernel computes the scores again: 5 GEMMs against the forward's 2 (Dao et al. 2022,
// algorithm 4). Ring attention takes `steps` kernels, each on the keys of another rank: with causal chunks
// balanced as in Brandon et al. 2023 (striped) and Megatron-LM (first and last half chunks together) every
// step fills half of its square.
struct Attention {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, head_dim = 0, query = 0, keys = 0;
  bool causal = true;
  bool backward = false;
  std::int64_t v_head_dim = 0;  // 0: head_dim
  std::int64_t window = 0;      // keys that a query sees, itself included; 0: all before it
  std::int64_t steps = 1;
  AttentionOperands operands = AttentionOperands::activations;
};

// The scan of a state space over the sequences of one rank in chunks (Dao and Gu 2024, section 6): scores of
// each group and chunk, states of head_dim x state at the end of every chunk, which are passed on, and from
// both the outputs. FLOPs forward, squares of chunks counted in full: 2 tokens (chunk (groups state + heads
// head_dim) + 2 heads head_dim state). The backward kernels make scores and states again.
struct Scan {
  std::int64_t tokens = 0, heads = 0, head_dim = 0, groups = 0, state = 0, chunk = 0;
  bool backward = false;
  bool of_linear_attention = false;  // its kernels keep no scores: their tensors are all that they move
};

// What a collective does with its tensors, where its op leaves that open.
enum class Exchange : std::uint8_t {
  plain,
  maximum,         // of an all-reduce: the largest, not the sum
  partial_sums,    // of sends round a ring: of partial sums, which are added up where they arrive
  rows_for_heads,  // of an all-to-all: a rank gives away rows of all heads and gets all rows of its heads
  heads_for_rows,  // back
};

// `bytes` is the full buffer of one call: what nccl-tests calls size.
struct Collective {
  CollectiveOp op = CollectiveOp::all_reduce;
  CommGroup group = CommGroup::tensor;
  double bytes = 0;
  std::int64_t calls = 1;
  Fanout fanout = {};  // of dispatch and combine, whose bytes are those of the rows that visit a rank
  double weights = 0;  // of those rows' choices, which come with them: rows x choices of each
  Exchange exchange = Exchange::plain;
};

// Does a library other than NCCL run it?
constexpr bool is_row_exchange(CollectiveOp op) {
  return op == CollectiveOp::dispatch || op == CollectiveOp::combine;
}

// A collective runs beside other kernels of its block, call by call beside chunk by chunk (or ring step by
// ring step): of each call only what is longer than a chunk is exposed, and the last `exposed_calls` wholly.
struct Overlap {
  // The GEMMs of these weights in this pass, whose chunks take turns; in the other half of the backward
  // pass it hides in op B only.
  std::vector<TensorId> weights = {};
  GemmPass pass = GemmPass::forward;
  bool attention = false;  // instead: the steps of attention
  std::int64_t exposed_calls = 0;
};

// A kernel is known by its type and by the slots of its tensors. Its name is for people: it decides nothing.
struct Kernel {
  std::string name;  // unique within its list, e.g. "qkv"
  std::variant<Gemm, Attention, Scan, Pointwise, Collective> what;
  KernelTensors reads;
  KernelTensors writes;
  Overlap overlap = {};
  bool host_waits = false;  // for what it writes, before it launches the next one
  LayerPart part = LayerPart::none;
  std::int64_t launches = 1;  // of the host: Transformer Engine multiplies and quantizes expert by expert
  std::int64_t width = 0;     // of norms and activations: elements of a row that are taken together
  bool unmeasured = false;    // nobody timed such a kernel: its time is of its FLOPs and bytes alone
};

// Does the collective run beside the other kernel?
bool runs_beside(const Kernel& collective, const Kernel& other);

// The type of a pointwise kernel is one of these.
template <typename... Types>
bool is_one_of(const Kernel& kernel, Types... types) {
  const auto* type = std::get_if<Pointwise>(&kernel.what);
  return type != nullptr && ((*type == types) || ...);
}

// Pieces that a GEMM or attention runs in, one after the other.
std::int64_t chunks_of(const Kernel& kernel);

// FLOPs as the kernel's struct says, counting full squares.
double flops(const Attention& attention);
double flops(const Scan& scan);

// Executed FLOPs of GEMM, attention and scan; 0 for the others. Causal attention counts full squares.
double flops(const Kernel& kernel);

enum class BlockKind : std::uint8_t {
  tower,  // its patches, layers and projectors, ahead of the embedding
  embedding,
  layer,
  module,  // of multi-token prediction
  head,
  arrival,   // of a message from another stage
  optimizer  // the step
};

// A piece of the network whose kernel lists are given once and repeated.
struct Block {
  BlockKind kind = BlockKind::layer;
  // For people. "embedding", "layer", "sparse_layer", "full_layer" (no window), of hybrid models
  // "mamba_layer", "attention_layer", "mlp_layer", "expert_layer"; before any of these "bf16_" or "tower_";
  // "mtp", "further_mtp", "head"
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Kernel> forward;
  std::vector<Kernel> recompute;        // forward kernels run again at the start of the backward pass
  std::vector<Kernel> backward_input;   // gradients of activations: op I
  std::vector<Kernel> backward_weight;  // gradients of parameters: op W; op B is I then W
  std::vector<TensorId> saved;          // what stays from forward to backward: derived by derive_saved()

  // `recompute` runs together with that of the block before it, which makes `input` anew: it is not saved.
  bool joins_previous = false;

  // How blocks join; -1 where there is none (the embedding receives no activation, the head hands none on).
  TensorId input = -1, output = -1, output_gradient = -1, input_gradient = -1;

  double bytes(const std::vector<TensorId>& ids) const;
  // Read and written; of a table only the rows looked up. Its gradient PyTorch makes whole, in the type of
  // the rows', and adds where another is kept (aten/src/ATen/native/cuda/Embedding.cu).
  double bytes_moved(const Kernel& kernel) const;
  double parameters() const;         // elements of role parameter
  double expert_parameters() const;  // those of them that belong to routed experts
};

// Activations that a backward kernel or `recompute` reads and `recompute` does not make again, in order of
// id.
std::vector<TensorId> derive_saved(const Block& block);

struct Repeated {
  int block = 0;  // index into Work::blocks
  std::int64_t repeats = 0;
  bool operator==(const Repeated&) const = default;
};

// Everything that one replica's ranks compute. blocks are shared; parts[s] lists what stage s runs, in
// forward order.
struct Work {
  std::vector<Block> blocks;
  std::vector<std::vector<Repeated>> parts;

  // Elements on one rank of the stage. Every tensor-parallel rank holds the norms, the biases of row-parallel
  // layers and learned positions in full, and has kv_heads / tp but at least one key and value head. A tied
  // head counts its copy of the table where it is not on the embedding's rank (pp > 1). The gradients of what
  // all tensor-parallel ranks hold are summed once a step, not by the kernels listed here.
  double parameters(int stage) const;
  double expert_parameters(int stage) const;  // those of them that Plan::edp() ranks hold in common
  double saved_bytes(int stage) const;        // bytes that one microbatch's forward leaves for its backward
  double boundary_bytes = 0;                  // of what passes from stage to stage, on one rank

  // Its forward kernels run on what comes from another stage, an activation or the gradient of one, before a
  // kernel of the stage does: none where messages come whole.
  Block arrival;
  bool receives_activation(int stage) const { return stage > 0; }
  bool receives_gradient(int stage) const { return stage + 1 < static_cast<int>(parts.size()); }
};

// The work of a legal plan (broken_rules() empty).
Work make_work(const Model& model, const Plan& plan);

// The optimizer step over `parameters` elements of one rank, whose tensors are added to `scratch`. Last is
// Adam, fused unless the plan says otherwise: it reads gradient, two moments and master weight (the weight
// itself where there is none), and writes all but the gradient, in the bytes of the plan's recipe. With
// Plan::clip_grad the gradients' squares are summed before, over all ranks (Pascanu et al. 2013, algorithm
// 1), and Adam reads the scale that follows. Without Plan::fused_step gradients are copied to fp32, unscaled
// (fp16) and clipped before it and the master weights copied after it, each in a pass over memory of its own.
std::vector<Kernel> optimizer_kernels(double parameters, const Plan& plan, Block& scratch);

// What of them the GPU runs where Adam steps at the host: the sum of the squares, if anything is clipped.
std::vector<Kernel> clipping_kernels(double parameters, const Plan& plan, Block& scratch);

// FLOPs of one microbatch summed over all ranks of one replica, experts evenly loaded. `backward` counts
// twice the forward; only the hardware sees what fused attention and scans compute once more inside their
// backward kernels, `rescore`, and what tensor-parallel ranks repeat and pad in both passes, `repeated`.
struct FlopCount {
  double forward = 0, recompute = 0, backward = 0, rescore = 0, repeated = 0;
  double model() const { return forward + backward; }
  double hardware() const { return forward + recompute + backward + rescore + repeated; }
};
FlopCount count_flops(const Work& work, const Plan& plan);

}  // namespace rehearse
