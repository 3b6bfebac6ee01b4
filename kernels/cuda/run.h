// Every call on a CUDA stream; fp32, bf16 and fp16, fp8 operands for GEMMs.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/call.h"

namespace rehearse::kernels::cuda {

class Products;
class FusedAttention;
class Scratch;

// Everything that a launch needs besides its operands.
struct Context {
  cudaStream_t stream = nullptr;
  Products* products = nullptr;  // cuBLASLt with its descriptions
  void* workspace = nullptr;     // used by this stream only
  std::size_t workspace_bytes = 0;
  FusedAttention* fused_attention = nullptr;  // nullptr: use our own kernels
  Scratch* scratch = nullptr;                 // used by this stream only
};

double clock_hz(int device);  // of the multiprocessors; takes 20 ms

void run(const Context& context, const Multiply& call);
void run(const Context& context, const AttentionForward& call);
void run(const Context& context, const AttentionBackward& call);
void run(const Context& context, const AttentionMerge& call);
void run(const Context& context, const Softmax& call);
void run(const Context& context, const SoftmaxBackward& call);
void run(const Context& context, const Norm& call);
void run(const Context& context, const NormInputGradient& call);
void run(const Context& context, const NormWeightGradient& call);
void run(const Context& context, const Rotary& call);
void run(const Context& context, const LatentRotary& call);
void run(const Context& context, const LatentRotaryBackward& call);
void run(const Context& context, const Activation& call);
void run(const Context& context, const ActivationBackward& call);
void run(const Context& context, const Add& call);
void run(const Context& context, const Dropout& call);
void run(const Context& context, const DropoutBackward& call);
void run(const Context& context, const BiasGradient& call);
void run(const Context& context, const Cast& call);
void run(const Context& context, const Quantize& call);
void run(const Context& context, const Randomise& call);
void run(const Context& context, const Embedding& call);
void run(const Context& context, const EmbeddingBackward& call);
void run(const Context& context, const Positions& call);
void run(const Context& context, const PositionsBackward& call);
void run(const Context& context, const LossMaximum& call);
void run(const Context& context, const LossShift& call);
void run(const Context& context, const LossSum& call);
void run(const Context& context, const LossExponentials& call);
void run(const Context& context, const Loss& call);
void run(const Context& context, const LossBackward& call);
void run(const Context& context, const LogSoftmax& call);
void run(const Context& context, const LikelihoodBackward& call);
void run(const Context& context, const LogSoftmaxBackward& call);
void run(const Context& context, const TokenLoss& call);
void run(const Context& context, const TokenLossBackward& call);
void run(const Context& context, const TopK& call);
void run(const Context& context, const TopKBackward& call);
void run(const Context& context, const CountChoices& call);
void run(const Context& context, const SortChoices& call);
void run(const Context& context, const TransposeBlocks& call);
void run(const Context& context, const SpreadRows& call);
void run(const Context& context, const CollectRows& call);
void run(const Context& context, const Convolution& call);
void run(const Context& context, const ConvolutionInputGradient& call);
void run(const Context& context, const ConvolutionWeightGradient& call);
void run(const Context& context, const Scan& call);
void run(const Context& context, const ScanInputGradient& call);
void run(const Context& context, const ScanWeightGradient& call);
void run(const Context& context, const Adam& call);
void run(const Context& context, const SquareSum& call);
void run(const Context& context, const ClipScale& call);

}  // namespace rehearse::kernels::cuda
