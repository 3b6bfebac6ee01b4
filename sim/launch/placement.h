// Where do the tensors of a block lie in memory?
//
// Rows are tokens, by position, and within one position by sequence. So the part that sequence parallelism
// splits off is contiguous. Weights lie as outputs x inputs.
#pragma once

#include <vector>

#include "kernels/tensor.h"
#include "plan/fp8.h"
#include "plan/work.h"

namespace rehearse {

// Tensors that one GEMM writes, or that one GEMM or activation reads as one operand, are columns of one
// matrix. All other tensors have a matrix of their own.
struct TensorPlace {
  TensorId matrix = -1;             // the tensor under whose id the matrix is allocated
  std::int64_t rows = 1;            // of the matrix, where several tensors share it
  std::int64_t first_column = 0;    // of this tensor
  std::int64_t columns = 0;         // of this tensor
  std::int64_t matrix_columns = 0;  // of all of them

  bool has_own_matrix() const { return columns == matrix_columns; }
};

std::vector<TensorPlace> place_tensors(const Block& block);  // by tensor

// Bytes of a matrix whose elements have the tensor's own size.
std::size_t matrix_bytes(const Block& block, const TensorPlace& placement);

// The type of a tensor's elements: by their bytes, and by the plan where the bytes leave a choice. In an fp8
// plan, one-byte elements are e4m3, those of a gradient e5m2 (Micikevicius et al. 2022, section 3;
// Transformer Engine's Format.HYBRID, torchao's tensorwise scaling). A dropout mask is neither.
kernels::Type type_of(const Tensor& tensor, Precision precision);

// The type in which a kernel reads or writes the elements of a matrix. fp8 GEMMs read their weight's two
// bytes an element as two fp8 elements: first the weight by rows, then by columns.
kernels::Type type_in(const Block& block, const Kernel& kernel, TensorId matrix, Precision precision);

// The GEMM that reads a tensor without conversion; nullptr where there is none.
const Gemm* product_of(const Block& block, TensorId tensor);

}  // namespace rehearse
