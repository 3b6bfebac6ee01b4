// Everything that can be launched on a device.
#pragma once

#include <variant>

#include "kernels/call/attention.h"
#include "kernels/call/multiply.h"
#include "kernels/call/optimizer.h"
#include "kernels/call/pointwise.h"
#include "kernels/call/state_space.h"
#include "kernels/call/token_loss.h"
#include "kernels/call/tokens.h"

namespace rehearse::kernels {

using Call =
    std::variant<Multiply, AttentionForward, AttentionBackward, AttentionMerge, Softmax, SoftmaxBackward,
                 Norm, NormInputGradient, NormWeightGradient, Rotary, LatentRotary, LatentRotaryBackward,
                 Activation, ActivationBackward, Add, Dropout, DropoutBackward, BiasGradient, Cast, Quantize,
                 Randomise, Embedding, EmbeddingBackward, Positions, PositionsBackward, LossMaximum,
                 LossShift, LossSum, LossExponentials, Loss, LossBackward, LogSoftmax, LikelihoodBackward,
                 LogSoftmaxBackward, TokenLoss, TokenLossBackward, TopK, TopKBackward, CountChoices,
                 SortChoices, TransposeBlocks, SpreadRows, CollectRows, Convolution, ConvolutionInputGradient,
                 ConvolutionWeightGradient, Scan, ScanInputGradient, ScanWeightGradient, Adam, SquareSum,
                 ClipScale>;

}  // namespace rehearse::kernels
