// Which kernels do the blocks of a GPT, Llama or mixture of experts run, and in which order?
#pragma once

#include "plan/work/builder.h"
#include "plan/work/recompute.h"
#include "plan/work/shape.h"

namespace rehearse {

// A residual branch before it is added: its output and the bias (-1: none) that goes with the sum.
struct Branch {
  TensorId output = -1;
  TensorId bias = -1;
};

// Rows of shape.heads queries and keys of `width`, and values of `v_width`. Keys and values may have fewer
// heads. Tensors in `held` stay as long as these do.
struct Heads {
  TensorId query = -1, key = -1, value = -1;
  std::int64_t width = 0, v_width = 0;
  std::vector<TensorId> held = {};
  TensorId sinks = -1;             // scores that take part in each head's softmax, if any: a parameter
  TensorId gate = -1;              // its sigmoid scales attention's output, if any
  TensorId compressed_query = -1;  // of latent attention
};

// Multi-head latent attention (DeepSeek-V2, equations 9 to 18). As in Megatron-LM
// (transformer/multi_latent_attention.py), every rank holds the down projections whole and maps its own rows.
// With sequence parallelism the latent is gathered, and heads are split after it.
Heads latent_heads(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                   TensorId input);

// FlashAttention over heads, with the messages of context parallelism. `rerun`: it is recomputed for the
// backward pass.
TensorId fused_attention(BlockBuilder& builder, const Model& model, const Shape& shape, const Heads& heads,
                         bool rerun);

// From normalized rows to the output projection. Selective recompute repeats the core (all kernels between q,
// k, v and the projection's input).
Branch attention(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                 TensorId input);

// Gate, up and down projection of a name, e.g. "mlp": from normalized rows to the down projection.
struct FeedForward {
  std::string name;
  std::int64_t width = 0;  // on this rank
  bool bias = false;
};
Branch feed_forward(BlockBuilder& builder, const Model& model, const Shape& shape, const FeedForward& mlp,
                    TensorId input);

// GELU of `reads`, or SiLU of the gate times the up projection, over `elements` outputs in rows of `width`.
// Experts read gate and up as one tensor, and weights that scale rows (Slot::row_weights). `varying`: the
// number of rows varies.
TensorId activate(BlockBuilder& builder, const std::string& name, KernelTensors reads, double elements,
                  std::int64_t width, bool varying = false);

// A sparse layer's router, routed and shared experts, as run by Megatron-LM's all-to-all dispatcher and
// grouped MLP (transformer/moe/token_dispatcher.py, experts.py): token dispatch, experts and combine.
Branch experts(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
               TensorId input);

// From normalized rows to the output projection of a state space (Dao and Gu 2024, figure 6, right). Run as
// in mamba-ssm's mamba_split_conv1d_scan_combined, which Megatron core calls (ssm/mamba_mixer.py).
Branch mamba(BlockBuilder& builder, const Model& model, const Shape& shape, TensorId input);

// From normalized rows to the output projection of a recurrence, which replaces attention.
Branch recurrence(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                  TensorId input);

// The same beside experts whose router and branches have norms of their own (transformers,
// modeling_gemma4.py). `input`: rows of the last residual sum. `normed`: rows that the shared MLP reads.
Branch experts_with_norms(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                          TensorId normed, TensorId input);

// The keys that each query's attention sees, chosen by scores of normalized `rows` and of compressed
// `queries`. Blocks of keys are chosen by scores of the rows alone.
TensorId choose_keys(BlockBuilder& builder, const Indexer& indexer, const Shape& shape, TensorId rows,
                     TensorId queries, std::int64_t query_rank);

// Weighted sum of `rows` and of Model::depth_sums() sums of earlier layers. The weights come from a score of
// each.
TensorId sum_depths(BlockBuilder& builder, const Model& model, const std::string& name, TensorId rows);

// The kind of a model's layer; layers of one kind share a block.
struct LayerSort {
  LayerType type = LayerType::transformer;
  bool sparse = false;
  bool sees_all = true;  // looks through no window
  bool in_bf16 = false;  // under a plan in fp8 or fp4
  bool recurs = false;   // in attention's place
  bool scores_keys = false;
  bool rotates = true;                                          // where the model has rotary positions
  std::int32_t shape = 0;                                       // as Model::shape_of
  bool encodes = false, crosses = false, ends_encoder = false;  // beside a decoder
  auto operator<=>(const LayerSort&) const = default;
};
LayerSort sort_of(const Model& model, const Plan& plan, std::int64_t layer);

// Attention and MLP, or the one of them that a hybrid's layer has, with their norms and residual sums.
TensorId layer(BlockBuilder& builder, const Model& model, const Plan& plan, LayerSort sort, TensorId input);

// Rows of hidden elements for the tokens of a microbatch, looked up in `table`, a parameter of the block.
TensorId embed(BlockBuilder& builder, const Model& model, TensorId table);

// Logits of normalised rows by `weight`, a parameter of the block, and the loss.
void predict(BlockBuilder& builder, const Model& model, const Plan& plan, TensorId rows, TensorId weight);

Block embedding_block(const Model& model, const Plan& plan);
Block layer_block(const Model& model, const Plan& plan, LayerSort sort, LayerKind kind = LayerKind::planned);
// The output of an MTP block is its input. The `first` one of a stage without the embedding holds a copy of
// its table for all.
Block mtp_block(const Model& model, const Plan& plan, bool first);
Block head_block(const Model& model, const Plan& plan);

}  // namespace rehearse
