// Where do the tensors of a block lie in memory?
//
// Rows are tokens, position by position and within one position sequence by sequence: what sequence
// parallelism splits off is then contiguous. Weights lie as outputs x inputs.
#pragma once

#include <vector>

#include "kernels/tensor.h"
#include "plan/work.h"

namespace rehearse {

// Tensors that one GEMM makes or reads as one operand are columns of one matrix, all others a matrix of their
// own.
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

// What the elements of a tensor are: by its bytes, and for two bytes by the plan.
kernels::Type type_of(const Tensor& tensor, Precision precision);

}  // namespace rehearse
