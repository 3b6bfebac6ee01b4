// What runs where nothing fuses the operations between the GEMMs: eager PyTorch launches a kernel for each,
// and keeps what its autograd functions ask for.
#pragma once

#include <string>

#include "plan/work/builder.h"

namespace rehearse {

// An fp32 copy, whose gradient is copied back.
TensorId widen(BlockBuilder& builder, const std::string& name, TensorId input);

// RMSNorm over vectors of `width` in fp32, 128 bytes an element of 2 over both passes (PyTorch before 2.8,
// aten/src/ATen/native/layer_norm.cpp, rms_norm: casts, pow, mean, rsqrt and two multiplications;
// derivatives.yaml for the way back).
TensorId normalise_eagerly(BlockBuilder& builder, const std::string& name, TensorId input,
                           std::int64_t width);

// Rotates `heads` as complex numbers of fp32 (torchtitan, models/llama3/model.py, apply_rotary_emb).
TensorId rotate_eagerly(BlockBuilder& builder, const std::string& name, TensorId heads);

// Rotates `heads` as halves of real numbers, 52 bytes an element of 2 over both passes: the second half
// negated and put before the first, two multiplications and a sum; each half's gradient fills a tensor of the
// whole (Aleph Alpha's Scaling, core/nn/rotary.py, rotate_half; PyTorch, derivatives.yaml: slice_backward).
// Megatron core's goes the same way (models/common/embeddings/rope_utils.py, _apply_rotary_pos_emb_bshd).
TensorId rotate_halves_eagerly(BlockBuilder& builder, const std::string& name, TensorId heads);

// Softmax over scaled and masked scores in fp32, 76 bytes a score of 2 over both passes: what Megatron-LM
// runs where its fused kernel does not (fused_softmax.py, forward_torch_softmax).
// `sinks` (-1: none), a score more of each row, are joined to the others and what they took is dropped
// (core/fusions/fused_softmax.py, SoftmaxOne).
TensorId softmax_eagerly(BlockBuilder& builder, TensorId scores, TensorId sinks);

// SiLU of the gate times the up projection in two kernels: the first one's output stays for the second's
// gradient.
TensorId gate_eagerly(BlockBuilder& builder, const std::string& name, TensorId gate, TensorId up,
                      double elements);

// Squared ReLU, torch.pow(relu(x), 2), 28 bytes an element of 2 over both passes where one kernel each moves
// 10 (PyTorch, tools/autograd/derivatives.yaml: pow takes the first power and doubles it before it
// multiplies).
TensorId square_eagerly(BlockBuilder& builder, const std::string& name, TensorId input, double elements);

// Queries, keys and values as nanotron hands them to FlashAttention (models/llama.py, CausalSelfAttention):
// copied with the sequences apart, keys and values then joined and copied side by side, for rotary kernels
// that work in place. Where keys are as many as queries all three are copied as one tensor, of which the
// queries keep the whole: that of the copied keys and values is `held` until attention's backward pass.
struct PackedHeads {
  TensorId query = -1, key = -1, value = -1, held = -1;
};
PackedHeads pack_heads(BlockBuilder& builder, TensorId query, TensorId key, TensorId value);

}  // namespace rehearse
