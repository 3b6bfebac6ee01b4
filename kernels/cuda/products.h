// How does cuBLASLt run a GEMM?
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

void check_blas(cublasStatus_t result, const char* what);

template <typename T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

// The cuBLASLt description of a Multiply, and its chosen algorithm. Row-major C = op(A) op(B) is column-major
// C^T = op(B)^T op(A)^T.
struct Product {
  Owned<cublasLtMatmulDesc_t> what;
  Owned<cublasLtMatrixLayout_t> first, second, result;  // of b, a and c
  cublasLtMatmulAlgo_t algorithm = {};
};

// cuBLASLt's handle and the GEMMs described so far. A description and the choice of an algorithm cost more
// than a launch, and shapes repeat.
class Products {
 public:
  // `multiprocessors`: number of SMs that tiles are chosen for; 0: all of the GPU.
  explicit Products(int multiprocessors = 0);
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products();

  void launch(const Context& context, const Multiply& call);

 private:
  using Key = std::array<std::int64_t, 21>;
  static Key key_of(const Multiply& call);
  Product make(const Multiply& call, std::size_t workspace_bytes) const;

  int multiprocessors_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;  // streams launch from several threads
  std::map<Key, Product> known_;
};

}  // namespace rehearse::kernels::cuda
