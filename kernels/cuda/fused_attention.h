// Does cuDNN compute this attention? Its fused kernels use the tensor cores; our kernels compute the rest.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/partition.h"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

// cuDNN on one device or partition, with a plan for each shape, stride, type and direction used so far. It
// takes calls under these conditions:
// - bf16 or fp16, without positions;
// - causal attention with as many queries as keys;
// - windows only with causal attention;
// - rows and heads that are multiples of 16 bytes;
// - cuDNN's own check of support accepts the call.
// Refusals are remembered too. The backward pass is not deterministic where its fastest kernel is not, as in
// PyTorch by default. Streams may call from several threads.
class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  // Whether cuDNN took the call, which is then on the context's stream. DeviceError when cuDNN fails.
  virtual bool run(const Context& context, const AttentionForward& call) = 0;
  virtual bool run(const Context& context, const AttentionBackward& call) = 0;
  virtual std::int64_t calls() const = 0;  // number of calls that it took
};

// nullptr in a build without cuDNN. The partition, if there is one, must outlive it.
std::unique_ptr<FusedAttention> open_fused_attention(const Partition* partition);

std::string cudnn_version();  // "9.19.0"; empty in a build without cuDNN

}  // namespace rehearse::kernels::cuda
