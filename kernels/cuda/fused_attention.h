// Does cuDNN compute this attention? Its fused kernels use the tensor cores; ours compute what it does not
// take.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/partition.h"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

// cuDNN on one device or partition, with the plan of every shape, stride, type and direction asked for so
// far. It takes bf16 and fp16 without positions, causal attention only of as many queries as keys, windows
// only of causal attention, rows and heads that are multiples of 16 bytes, and of these what its own check of
// support takes; that it refused is remembered too. Its backward pass is not deterministic where its fastest
// kernel is not, as PyTorch's is not by default. Streams may call from several threads.
class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  // Whether cuDNN took the call: then it is on the context's stream. DeviceError when cuDNN fails.
  virtual bool run(const Context& context, const AttentionForward& call) = 0;
  virtual bool run(const Context& context, const AttentionBackward& call) = 0;
  virtual std::int64_t calls() const = 0;  // that it took
};

// nullptr in a build without cuDNN. The partition, if there is one, must outlive it.
std::unique_ptr<FusedAttention> open_fused_attention(const Partition* partition);

std::string cudnn_version();  // "9.19.0"; empty in a build without cuDNN

}  // namespace rehearse::kernels::cuda
