// The log-sum-exp of attention between our order and cuDNN's.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/fused_attention.h"

namespace rehearse::kernels::cuda {

namespace {

// Where cuDNN has the number of a row's head.
struct PackedIndex {
  DeviceTokens tokens;
  std::int64_t heads;
  __device__ std::int64_t of(std::int64_t r, std::int64_t head) const {
    const std::int64_t sequence = tokens.position_major ? r % tokens.sequences : r / tokens.length;
    return (sequence * heads + head) * tokens.length + tokens.place(r);
  }
};

struct Pack {
  PackedIndex index;
  Rows<float> from;
  float* packed;
  __device__ void operator()(std::int64_t r, std::int64_t head) const { packed[index.of(r, head)] = from.load(r, head); }
};

struct Unpack {
  PackedIndex index;
  const float* packed;
  Rows<float> to;
  __device__ void operator()(std::int64_t r, std::int64_t head) const { to.store(r, head, packed[index.of(r, head)]); }
};

}  // namespace

void pack_log_sum_exp(cudaStream_t stream, const Tokens& tokens, const Tensor& rows, float* packed) {
  for_elements(stream, rows.rows, rows.columns, Pack{{on_device(tokens), rows.columns}, rows_of<float>(rows), packed},
               "log-sum-exp for cuDNN");
}

void unpack_log_sum_exp(cudaStream_t stream, const Tokens& tokens, const float* packed, const Tensor& rows) {
  for_elements(stream, rows.rows, rows.columns, Unpack{{on_device(tokens), rows.columns}, packed, rows_of<float>(rows)},
               "log-sum-exp of cuDNN");
}

}  // namespace rehearse::kernels::cuda
