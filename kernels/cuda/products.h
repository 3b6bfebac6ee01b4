// Which algorithm does cuBLASLt take for a matrix product?
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

// What cuBLASLt is told of a Multiply. Row-major C = op(A) op(B) is column-major C^T = op(B)^T op(A)^T.
struct Product {
  Owned<cublasLtMatmulDesc_t> what;
  Owned<cublasLtMatrixLayout_t> first, second, result;  // of b, a and c
};
Product product_of(const Multiply& call, int multiprocessors);

// The library's handle, and its choices: asking costs more than launching, and shapes come again and again.
class Products {
 public:
  // `multiprocessors`: for how many tiles are chosen; 0: all of the GPU.
  explicit Products(int multiprocessors = 0);
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products();

  cublasLtHandle_t handle() const { return handle_; }
  int multiprocessors() const { return multiprocessors_; }
  cublasLtMatmulAlgo_t algorithm(const Multiply& call, const Product& product, std::size_t workspace_bytes);

 private:
  using Key = std::array<std::int64_t, 21>;
  static Key key_of(const Multiply& call);
  cublasLtMatmulAlgo_t choose(const Multiply& call, const Product& product,
                              std::size_t workspace_bytes) const;

  int multiprocessors_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;  // streams launch from several threads
  std::map<Key, cublasLtMatmulAlgo_t> chosen_;
};

}  // namespace rehearse::kernels::cuda
