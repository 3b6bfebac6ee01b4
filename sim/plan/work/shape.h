// How large are the tensors of a microbatch and of a layer on one rank?
#pragma once

#include <cstdint>

#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

struct Shape {
  std::int64_t seq = 0;       // tokens of a sequence on this rank
  std::int64_t batch = 0;     // sequences of a microbatch
  std::int64_t tokens = 0;    // seq x batch: rows of every tensor-parallel GEMM
  std::int64_t rows = 0;      // tokens, or tokens / tp between the GEMMs with sequence parallelism
  std::int64_t hidden = 0;    // whole
  std::int64_t latent = 0;    // width of the rows that routed experts see
  std::int64_t heads = 0;     // query heads on this rank
  std::int64_t kv_heads = 0;  // at least one: fewer key and value heads than tp are replicated
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;    // MLP width on this rank
  std::int64_t vocab = 0;  // table rows on this rank, rounded up
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  ContextExchange cp_exchange = ContextExchange::ring;
  bool tp_comm_overlap = false;
  bool symmetric_memory = false;  // tp_comm_overlap by PyTorch's torch.distributed._symmetric_memory
  int tp_comm_proj_sms = 0, tp_comm_fc2_sms = 0;  // as in Plan
  bool tp_backward_overlap = false;
  bool sequence_parallel = false;  // and tp > 1
  bool batch_first = false;        // sequences are apart: tensors gathered or scattered along them are copied
  bool gathers_again = true;       // inputs gathered along the sequence are dropped until the weight gradient
  bool quantized = false;          // linear layers multiply in fp8 or fp4
  bool fp4 = false;                // in fp4
  bool dynamic_scaling = false;    // scales come from a pass over the tensor itself
  bool transposes_kept = false;    // inputs are quantized only by rows, and the kept ones transposed
  bool scaled_by_row = false;      // by rows for one GEMM, by columns for the other
  bool scaled_by_block = false;    // of 32 or 16 elements of a row for one GEMM, of a column for the other
  bool either_layout = false;      // GEMMs take quantized operands in either layout
  bool fp8_attention = false;      // attention also reads quantized operands
  std::int64_t quantized_apart = 1;  // tensors of an operand with a separate cast launch each
  // Where scores are kept: Megatron-LM's fused kernel of 2021 to 2023 takes 16-bit scores of 17 to 2,048
  // tokens, with matrices in fours (fused_softmax.py, is_kernel_available).
  bool fused_softmax = true;
  bool splits_gate = false;     // gate and up projection are one GEMM each
  bool splits_qkv = false;      // so are queries, keys and values
  bool rotates_halves = false;  // rotary positions that are not fused: real numbers in halves
  bool keeps_views = false;     // of queries, keys and values: the whole GEMM's output stays
  // Passes beside attention (attention.cpp): of Megatron-LM before Transformer Engine, and with it.
  bool rearranges_heads = false, splits_heads = false;
  bool repeats_heads = false;  // attention gets a key and a value for each head of queries
  std::int64_t attended_kv_heads() const { return repeats_heads ? heads : kv_heads; }
  bool fused_norm = true, fused_rotary = true, fused_activation = true;  // as in Plan
  bool fused_accumulation = true;                                        // as in Plan
  bool expands_biases = false;                                           // of residual sums (pointwise.cpp)
  bool wide_norms = false;                                               // norms read fp32 copies
  bool packs_heads = false;   // copied before attention: pack_heads()
  double element_bytes = 2;   // of activations and weights
  double operand_bytes = 1;   // of the operands of linear layers, where they are quantized
  double gradient_bytes = 4;  // of parameters

  double token_bytes(std::int64_t width) const { return elements(tokens, width) * element_bytes; }
  double token_elements() const { return elements(tokens, hidden); }
  double row_elements() const { return elements(rows, hidden); }

  // Elements of a matrix; a double, because the product may pass 64 bits.
  static double elements(std::int64_t height, std::int64_t width) {
    return static_cast<double>(height) * static_cast<double>(width);
  }
};

Shape shape_on_one_rank(const Model& model, const Plan& plan);

// The shape of a layer that multiplies in 16 bits where others use fp8 or fp4.
Shape in_bf16(Shape shape);

}  // namespace rehearse
