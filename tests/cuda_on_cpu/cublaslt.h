// Which fields does a cuBLASLt description have?
#pragma once

#include <cublasLt.h>

#include "attributes.h"

struct cublasLtMatmulDescOpaque_t {
  cuda_on_cpu::Attributes attributes;
  bool transposes_a() const {
    return attributes.get(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) == CUBLAS_OP_T;
  }
  bool transposes_b() const {
    return attributes.get(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) == CUBLAS_OP_T;
  }
  bool is_biased() const {
    return attributes.get(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT) == CUBLASLT_EPILOGUE_BIAS;
  }
  cudaDataType_t bias_type(cudaDataType_t otherwise) const {
    return attributes.get(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, otherwise);
  }
  const void* bias() const { return attributes.get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr); }
};

// Columns lie one after the other, `leading` elements apart.
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType_t type;
  std::int64_t rows, columns, leading;
  cuda_on_cpu::Attributes attributes;
  std::int64_t batch() const { return attributes.get(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, std::int32_t{1}); }
  std::int64_t step() const {
    return attributes.get(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, std::int64_t{0});
  }
};

struct cublasLtMatmulPreferenceOpaque_t {
  cuda_on_cpu::Attributes attributes;
};

namespace cuda_on_cpu {

// One GEMM: D = op(A) op(B) + beta C, and a bias of each row.
struct MatrixProduct {
  cublasLtMatmulDescOpaque_t what;
  cublasLtMatrixLayoutOpaque_t a, b, c, d;

  std::int64_t inner() const { return what.transposes_a() ? a.rows : a.columns; }
  bool fits_together() const;
  // Would a GPU have a kernel for it?
  bool is_supported() const;
  void run(const void* a_data, const void* b_data, float alpha, float beta, const void* c_data,
           void* d_data) const;
};

std::size_t bytes_of(cudaDataType_t type);

}  // namespace cuda_on_cpu
