#include "kernels/cuda/products.h"

#include <string>

#include "kernels/device.h"

namespace rehearse::kernels::cuda {

namespace {

cudaDataType_t data_type(Type type) {
  switch (type) {
    case Type::fp32:
      return CUDA_R_32F;
    case Type::bf16:
      return CUDA_R_16BF;
    case Type::fp16:
      return CUDA_R_16F;
    case Type::fp8_e4m3:
      return CUDA_R_8F_E4M3;
    case Type::fp8_e5m2:
      return CUDA_R_8F_E5M2;
    default:
      throw DeviceError("a matrix product takes fp32, bf16, fp16 or fp8");
  }
}

Owned<cublasLtMatrixLayout_t> layout(const Tensor& tensor, std::int64_t batch, std::int64_t step) {
  cublasLtMatrixLayout_t made = nullptr;
  check_blas(
      cublasLtMatrixLayoutCreate(&made, data_type(tensor.type), static_cast<std::uint64_t>(tensor.columns),
                                 static_cast<std::uint64_t>(tensor.rows), tensor.stride),
      "layout");
  Owned<cublasLtMatrixLayout_t> owned(made, cublasLtMatrixLayoutDestroy);
  const auto set = [made](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    check_blas(cublasLtMatrixLayoutSetAttribute(made, attribute, &value, sizeof value), "batch");
  };
  if (batch > 1) {
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  return owned;
}

void set_bias(cublasLtMatmulDesc_t description, const Tensor& bias) {
  check_blas(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.data,
                                            sizeof bias.data),
             "bias");
}

Owned<cublasLtMatmulDesc_t> description(const Multiply& call, int multiprocessors) {
  cublasLtMatmulDesc_t made = nullptr;
  check_blas(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "description");
  Owned<cublasLtMatmulDesc_t> owned(made, cublasLtMatmulDescDestroy);
  const auto set = [made](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check_blas(cublasLtMatmulDescSetAttribute(made, attribute, &value, sizeof value), "attribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, call.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, call.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (multiprocessors > 0) set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t{multiprocessors});
  if (call.a.type == Type::fp8_e4m3 && call.b.type == Type::fp8_e4m3) {
    // Forward GEMMs of fp8 accumulate in the tensor cores, as in Transformer Engine.
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  }
  if (call.bias.given()) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);  // of the columns of C, the rows of C^T
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(call.bias.type));
    set_bias(made, call.bias);
  }
  return owned;
}

// The largest power of two up to 256 that divides the address.
std::uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t bytes = 256;
  while (address % bytes != 0) bytes /= 2;
  return bytes;
}

Owned<cublasLtMatmulPreference_t> preference(const Multiply& call, std::size_t workspace_bytes) {
  cublasLtMatmulPreference_t made = nullptr;
  check_blas(cublasLtMatmulPreferenceCreate(&made), "preference");
  Owned<cublasLtMatmulPreference_t> owned(made, cublasLtMatmulPreferenceDestroy);
  const auto set = [made](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_blas(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value), "preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(call.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(call.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(call.c.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(call.c.data));
  return owned;
}

}  // namespace

void check_blas(cublasStatus_t result, const char* what) {
  if (result != CUBLAS_STATUS_SUCCESS) {
    throw DeviceError(std::string("cuBLASLt ") + what + ": " + cublasLtGetStatusString(result));
  }
}

Products::Products(int multiprocessors) : multiprocessors_(multiprocessors) {
  check_blas(cublasLtCreate(&handle_), "start");
}

Products::~Products() {
  cublasLtDestroy(handle_);
}

Products::Key Products::key_of(const Multiply& call) {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const bool adds = call.accumulate, biased = call.bias.given();
  return {call.m(),
          call.n(),
          call.k(),
          call.a.stride,
          call.b.stride,
          call.c.stride,
          call.batch,
          call.step_a,
          call.step_b,
          call.step_c,
          number(call.a.type),
          number(call.b.type),
          number(call.c.type),
          number(call.transpose_a),
          number(call.transpose_b),
          number(adds),
          biased ? number(call.bias.type) : -1,
          alignment(call.a.data),
          alignment(call.b.data),
          alignment(call.c.data),
          alignment(call.bias.data)};
}

Product Products::make(const Multiply& call, std::size_t workspace_bytes) const {
  Product product = {description(call, multiprocessors_), layout(call.b, call.batch, call.step_b),
                     layout(call.a, call.batch, call.step_a), layout(call.c, call.batch, call.step_c)};
  const auto wanted = preference(call, workspace_bytes);
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  check_blas(cublasLtMatmulAlgoGetHeuristic(handle_, product.what.get(), product.first.get(),
                                            product.second.get(), product.result.get(), product.result.get(),
                                            wanted.get(), 1, &best, &found),
             "choice of an algorithm");
  if (found == 0) throw DeviceError("cuBLASLt has no algorithm for this GEMM");
  product.algorithm = best.algo;
  return product;
}

void Products::launch(const Context& context, const Multiply& call) {
  const Key key = key_of(call);
  const std::lock_guard lock(mutex_);  // guards the description too: the bias pointer changes with each call
  auto known = known_.find(key);
  if (known == known_.end()) known = known_.emplace(key, make(call, context.workspace_bytes)).first;
  const Product& product = known->second;
  if (call.bias.given()) set_bias(product.what.get(), call.bias);
  const float one = 1, beta = call.accumulate ? 1.0F : 0.0F;
  check_blas(cublasLtMatmul(handle_, product.what.get(), &one, call.b.data, product.first.get(), call.a.data,
                            product.second.get(), &beta, call.c.data, product.result.get(), call.c.data,
                            product.result.get(), &product.algorithm, context.workspace,
                            context.workspace_bytes, context.stream),
             "product");
}

void run(const Context& context, const Multiply& call) {
  context.products->launch(context, call);
}

}  // namespace rehearse::kernels::cuda
