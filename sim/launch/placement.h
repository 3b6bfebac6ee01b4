// Where do the tensors of a block lie in memory?
//
// Rows are tokens, position by position and within one position sequence by sequence: what sequence
// parallelism splits off is then contiguous. Weights lie as outputs x inputs.
#pragma once

#include <vector>

#include "kernels/tensor.h"
#include "plan/fp8.h"
#include "plan/work.h"

namespace rehearse {

// Tensors that one GEMM makes or reads as one operand, or an activation does, are columns of one matrix, all
// others a matrix of their own.
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

// What the elements of a tensor are: by its bytes, and by the plan where its bytes leave a choice. In an fp8
// plan what takes one byte is e4m3, of a gradient e5m2 (Micikevicius et al. 2022, section 3; Transformer
// Engine's Format.HYBRID, torchao's tensorwise scaling); a mask of dropout is none of that.
kernels::Type type_of(const Tensor& tensor, Precision precision);

// What a kernel takes the elements of a matrix that it reads or writes for: GEMMs of fp8 take their
// weight's two bytes an element for two of fp8, first the weight by rows and then by columns.
kernels::Type type_in(const Block& block, const Kernel& kernel, TensorId matrix, Precision precision);

// The GEMM that reads a tensor as it stands; nullptr where none does.
const Gemm* product_of(const Block& block, TensorId tensor);

}  // namespace rehearse
