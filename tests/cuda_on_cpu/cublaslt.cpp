// cuBLASLt: descriptions, the choice of an algorithm (here: the assumptions about the operands), and GEMMs.
#include "cublaslt.h"

#include <algorithm>

#include "stream.h"

namespace {

using namespace cuda_on_cpu;

// In an algorithm: the operands' alignment that it was chosen for.
constexpr cublasLtMatmulPreferenceAttributes_t kAlignments[] = {
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};

cublasStatus_t valid(bool is) {
  return is ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

std::size_t bytes_of(cublasLtMatmulDescAttributes_t attribute) {
  if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return sizeof(void*);
  return attribute == CUBLASLT_MATMUL_DESC_FAST_ACCUM ? 1 : 4;
}

bool is_aligned(const void* data, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

}  // namespace

struct cublasLtContext {};

std::size_t cublasLtGetVersion() {
  return 130100;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t{
      type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading, {}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  return valid(layout->attributes.set(attribute, value, bytes,
                                      attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? 4 : 8));
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *description = new cublasLtMatmulDescOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  return valid(description->attributes.set(attribute, value, bytes, bytes_of(attribute)));
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  const std::size_t expected = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4;
  return valid(preference->attributes.set(attribute, value, bytes, expected));
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  const MatrixProduct product{*description, *a, *b, *c, *d};
  *found = 0;
  if (wanted < 1 || !product.fits_together()) return CUBLAS_STATUS_INVALID_VALUE;
  if (!product.is_supported()) return CUBLAS_STATUS_NOT_SUPPORTED;
  *results = {};
  for (std::size_t i = 0; i < std::size(kAlignments); ++i) {
    results->algo.data[i] = preference->attributes.get(kAlignments[i], std::uint32_t{256});
    const auto* layout = i == 0 ? a : i == 1 ? b : i == 2 ? c : d;
    const std::size_t needed = bytes_of(layout->type) == 1 ? 16 : bytes_of(layout->type);
    if (results->algo.data[i] < needed) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

// A library that finds an error of CUDA takes it for its own, whoever made it.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* /*workspace*/,
                              std::size_t /*workspace_bytes*/, cudaStream_t stream) {
  if (cudaPeekAtLastError() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  MatrixProduct product{*description, *a_layout, *b_layout, *c_layout, *d_layout};
  if (!product.fits_together() || !product.is_supported() || !is_aligned(a, algorithm->data[0]) ||
      !is_aligned(b, algorithm->data[1]) || !is_aligned(c, algorithm->data[2]) ||
      !is_aligned(d, algorithm->data[3]))
    return CUBLAS_STATUS_INVALID_VALUE;
  const float first = *static_cast<const float*>(alpha), second = *static_cast<const float*>(beta);
  stream_of(stream).put([=, all = std::move(product)] { all.run(a, b, first, second, c, d); });
  return CUBLAS_STATUS_SUCCESS;
}
