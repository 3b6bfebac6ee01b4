// Which kernels run where nothing fuses the operations between the GEMMs? Eager PyTorch launches a kernel for
// each operation, and keeps the tensors that its autograd functions need.
#pragma once

#include <string>

#include "plan/work/builder.h"

namespace rehearse {

// An fp32 copy, whose gradient is copied back.
TensorId widen(BlockBuilder& builder, const std::string& name, TensorId input);

// RMSNorm over vectors of `width` in fp32: 128 bytes an element of 2 over both passes. The forward pass has
// casts, pow, mean, rsqrt and two multiplications (PyTorch before 2.8, aten/src/ATen/native/layer_norm.cpp,
// rms_norm). The backward pass follows derivatives.yaml.
TensorId normalise_eagerly(BlockBuilder& builder, const std::string& name, TensorId input,
                           std::int64_t width);

// Rotates `heads` as complex numbers of fp32 (torchtitan, models/llama3/model.py, apply_rotary_emb).
TensorId rotate_eagerly(BlockBuilder& builder, const std::string& name, TensorId heads);

// Rotates `heads` as halves of real numbers: 52 bytes an element of 2 over both passes. The second half is
// negated and put before the first; two multiplications and a sum follow. Each half's gradient fills a tensor
// of the whole (Aleph Alpha's Scaling, core/nn/rotary.py, rotate_half; PyTorch, derivatives.yaml:
// slice_backward). Megatron core does the same (models/common/embeddings/rope_utils.py,
// _apply_rotary_pos_emb_bshd).
TensorId rotate_halves_eagerly(BlockBuilder& builder, const std::string& name, TensorId heads);

// Softmax over scaled and masked scores in fp32: 76 bytes a score of 2 over both passes. Megatron-LM runs
// this where its fused kernel does not apply (fused_softmax.py, forward_torch_softmax). `sinks` (-1: none)
// are one more score in each row. They are joined to the other scores, and their share of the result is
// dropped (core/fusions/fused_softmax.py, SoftmaxOne).
TensorId softmax_eagerly(BlockBuilder& builder, TensorId scores, TensorId sinks);

// SiLU of the gate times the up projection, in two kernels. The first one's output stays for the gradient of
// the second.
TensorId gate_eagerly(BlockBuilder& builder, const std::string& name, TensorId gate, TensorId up,
                      double elements);

// Squared ReLU, torch.pow(relu(x), 2): 28 bytes an element of 2 over both passes, where one fused kernel a
// pass moves 10. pow's backward takes the first power and doubles it before it multiplies (PyTorch,
// tools/autograd/derivatives.yaml).
TensorId square_eagerly(BlockBuilder& builder, const std::string& name, TensorId input, double elements);

// Queries, keys and values as nanotron passes them to FlashAttention (models/llama.py, CausalSelfAttention).
// They are copied with the sequences apart. Keys and values are then joined and copied side by side, for
// rotary kernels that work in place. With equal numbers of keys and queries, all three are copied as one
// tensor, and the queries keep the whole of it. In that case the tensor of the copied keys and values is
// `held` until attention's backward pass.
struct PackedHeads {
  TensorId query = -1, key = -1, value = -1, held = -1;
};
PackedHeads pack_heads(BlockBuilder& builder, TensorId query, TensorId key, TensorId value);

}  // namespace rehearse
