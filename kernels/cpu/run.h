// All calls on the CPU: fp32 operands, written for readability. Other devices are tested against these
// kernels.
#pragma once

#include "kernels/call.h"

namespace rehearse::kernels::cpu {

void run(const Multiply& call);
void run(const AttentionForward& call);
void run(const AttentionBackward& call);
void run(const AttentionMerge& call);
void run(const Softmax& call);
void run(const SoftmaxBackward& call);
void run(const Norm& call);
void run(const NormInputGradient& call);
void run(const NormWeightGradient& call);
void run(const Rotary& call);
void run(const LatentRotary& call);
void run(const LatentRotaryBackward& call);
void run(const Activation& call);
void run(const ActivationBackward& call);
void run(const Add& call);
void run(const Dropout& call);
void run(const DropoutBackward& call);
void run(const BiasGradient& call);
void run(const Cast& call);
void run(const Quantize& call);
void run(const Randomise& call);
void run(const Embedding& call);
void run(const EmbeddingBackward& call);
void run(const Positions& call);
void run(const PositionsBackward& call);
void run(const LossMaximum& call);
void run(const LossShift& call);
void run(const LossSum& call);
void run(const LossExponentials& call);
void run(const Loss& call);
void run(const LossBackward& call);
void run(const LogSoftmax& call);
void run(const LikelihoodBackward& call);
void run(const LogSoftmaxBackward& call);
void run(const TokenLoss& call);
void run(const TokenLossBackward& call);
void run(const TopK& call);
void run(const TopKBackward& call);
void run(const CountChoices& call);
void run(const SortChoices& call);
void run(const TransposeBlocks& call);
void run(const SpreadRows& call);
void run(const CollectRows& call);
void run(const Convolution& call);
void run(const ConvolutionInputGradient& call);
void run(const ConvolutionWeightGradient& call);
void run(const Scan& call);
void run(const ScanInputGradient& call);
void run(const ScanWeightGradient& call);
void run(const Adam& call);
void run(const SquareSum& call);
void run(const ClipScale& call);

}  // namespace rehearse::kernels::cpu
