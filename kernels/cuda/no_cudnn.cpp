#include "kernels/cuda/fused_attention.h"

namespace rehearse::kernels::cuda {

std::unique_ptr<FusedAttention> open_fused_attention(const Partition* /*partition*/) {
  return nullptr;
}

std::string cudnn_version() {
  return "";
}

}  // namespace rehearse::kernels::cuda
