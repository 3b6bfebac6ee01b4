#include "launch/placement.h"

#include <algorithm>

namespace rehearse {

namespace {

std::int64_t count(const Block& block, TensorId id) {
  return static_cast<std::int64_t>(block.tensors[static_cast<std::size_t>(id)].elements);
}

void put_side_by_side(const Block& block, const std::vector<TensorId>& ids, std::int64_t rows,
                      std::vector<TensorPlace>& places) {
  std::int64_t width = 0;
  for (const TensorId id : ids) width += count(block, id) / rows;
  std::int64_t column = 0;
  for (const TensorId id : ids) {
    const std::int64_t columns = count(block, id) / rows;
    places[static_cast<std::size_t>(id)] = {ids.front(), rows, column, columns, width};
    column += columns;
  }
}

// The leading reads that form the operand of `elements` elements; one tensor in most cases.
std::vector<TensorId> operand(const Block& block, const Kernel& kernel, std::int64_t elements) {
  std::vector<TensorId> ids;
  for (const TensorId id : kernel.reads) {
    if (elements <= 0) break;
    ids.push_back(id);
    elements -= count(block, id);
  }
  return ids;
}

}  // namespace

std::vector<TensorPlace> place_tensors(const Block& block) {
  std::vector<TensorPlace> places;
  for (std::size_t i = 0; i < block.tensors.size(); ++i) {
    const std::int64_t elements = count(block, static_cast<TensorId>(i));
    places.push_back({static_cast<TensorId>(i), 1, 0, elements, elements});
  }
  for (const auto* kernels : {&block.forward, &block.backward_input}) {
    for (const Kernel& kernel : *kernels) {
      const auto* gemm = std::get_if<Gemm>(&kernel.what);
      if (gemm == nullptr || gemm->batch > 1) continue;
      if (kernel.writes.size() > 1) put_side_by_side(block, kernel.writes, gemm->m, places);
      const std::vector<TensorId> gradients = operand(block, kernel, gemm->m * gemm->k);
      if (gradients.size() > 1) put_side_by_side(block, gradients, gemm->m, places);
    }
  }
  return places;
}

std::size_t matrix_bytes(const Block& block, const TensorPlace& placement) {
  const double element = block.tensors[static_cast<std::size_t>(placement.matrix)].element_bytes;
  return static_cast<std::size_t>(element) *
         static_cast<std::size_t>(placement.rows * placement.matrix_columns);
}

kernels::Type type_of(const Tensor& tensor, Precision precision) {
  using kernels::Type;
  if (tensor.element_bytes == 8) return Type::int64;
  if (tensor.element_bytes == 4) return Type::fp32;
  if (tensor.element_bytes == 1) return Type::uint8;
  return precision == Precision::fp16 ? Type::fp16 : Type::bf16;
}

}  // namespace rehearse
