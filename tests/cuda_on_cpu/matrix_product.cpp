#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <vector>

#include "cublaslt.h"

namespace cuda_on_cpu {

namespace {

bool is_fp8(cudaDataType_t type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

float load(const void* data, std::int64_t at, cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return static_cast<const float*>(data)[at];
    case CUDA_R_16BF:
      return static_cast<float>(static_cast<const __nv_bfloat16*>(data)[at]);
    case CUDA_R_16F:
      return static_cast<float>(static_cast<const __half*>(data)[at]);
    case CUDA_R_8F_E4M3:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[at]);
    case CUDA_R_8F_E5M2:
      return static_cast<float>(static_cast<const __nv_fp8_e5m2*>(data)[at]);
  }
  return NAN;
}

void store(void* data, std::int64_t at, cudaDataType_t type, float value) {
  if (type == CUDA_R_32F) static_cast<float*>(data)[at] = value;
  if (type == CUDA_R_16BF) static_cast<__nv_bfloat16*>(data)[at] = __nv_bfloat16(value);
  if (type == CUDA_R_16F) static_cast<__half*>(data)[at] = __half(value);
}

// Row by row, in fp32.
std::vector<float> rows_of(const cublasLtMatrixLayoutOpaque_t& layout, bool transposed, const void* data,
                           std::int64_t first) {
  std::vector<float> rows;
  const std::int64_t height = transposed ? layout.columns : layout.rows,
                     width = transposed ? layout.rows : layout.columns;
  rows.reserve(static_cast<std::size_t>(height * width));
  for (std::int64_t r = 0; r < height; ++r) {
    for (std::int64_t c = 0; c < width; ++c)
      rows.push_back(
          load(data, first + (transposed ? r * layout.leading + c : c * layout.leading + r), layout.type));
  }
  return rows;
}

}  // namespace

std::size_t bytes_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? 4 : is_fp8(type) ? 1 : 2;
}

bool MatrixProduct::fits_together() const {
  const auto height = [](const auto& layout, bool transposed) {
    return transposed ? layout.columns : layout.rows;
  };
  const auto width = [](const auto& layout, bool transposed) {
    return transposed ? layout.rows : layout.columns;
  };
  const bool ta = what.transposes_a(), tb = what.transposes_b();
  for (const auto* layout : {&a, &b, &c, &d}) {
    if (layout->leading < layout->rows || layout->rows <= 0 || layout->columns <= 0) return false;
    if (layout->batch() != d.batch()) return false;
  }
  return height(a, ta) == d.rows && width(b, tb) == d.columns && width(a, ta) == height(b, tb) &&
         c.rows == d.rows && c.columns == d.columns;
}

bool MatrixProduct::is_supported() const {
  if (c.type != d.type || is_fp8(d.type)) return false;
  if (!is_fp8(a.type)) {
    return a.type == b.type && (d.type == a.type || d.type == CUDA_R_32F) &&
           (!what.is_biased() || what.bias_type(d.type) == d.type);
  }
  const bool in_sixteens = d.rows % 16 == 0 && d.columns % 16 == 0 && inner() % 16 == 0 &&
                           a.leading % 16 == 0 && b.leading % 16 == 0;
  const cudaDataType_t bias = d.type == CUDA_R_32F ? CUDA_R_16BF : d.type;
  return is_fp8(b.type) && !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) && what.transposes_a() &&
         !what.transposes_b() && in_sixteens && (!what.is_biased() || what.bias_type(d.type) == bias);
}

void MatrixProduct::run(const void* a_data, const void* b_data, float alpha, float beta, const void* c_data,
                        void* d_data) const {
  const std::int64_t k = inner();
  for (std::int64_t batch = 0; batch < d.batch(); ++batch) {
    const std::vector<float> left = rows_of(a, what.transposes_a(), a_data, batch * a.step());
    const std::vector<float> right = rows_of(b, what.transposes_b(), b_data, batch * b.step());
    std::vector<float> sums(static_cast<std::size_t>(d.columns));
    for (std::int64_t r = 0; r < d.rows; ++r) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (std::int64_t i = 0; i < k; ++i) {
        const float factor = left[static_cast<std::size_t>(r * k + i)];
        const float* const row = &right[static_cast<std::size_t>(i * d.columns)];
        for (std::int64_t col = 0; col < d.columns; ++col)
          sums[static_cast<std::size_t>(col)] += factor * row[col];
      }
      const float bias = what.is_biased() ? load(what.bias(), r, what.bias_type(d.type)) : 0.0F;
      for (std::int64_t col = 0; col < d.columns; ++col) {
        float value = alpha * sums[static_cast<std::size_t>(col)] + bias;
        if (beta != 0) value += beta * load(c_data, batch * c.step() + col * c.leading + r, c.type);
        store(d_data, batch * d.step() + col * d.leading + r, d.type, value);
      }
    }
  }
}

}  // namespace cuda_on_cpu
