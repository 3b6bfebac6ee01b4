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

void place_quantized(const Block& block, const Kernel& kernel, std::vector<TensorPlace>& places) {
  const std::vector<TensorId> from = kernel.reads.all_in(Slot::operand);
  const Gemm* product = product_of(block, kernel.writes.front());
  if (from.size() > 1 && product != nullptr) put_side_by_side(block, from, product->m, places);
}

void place_product(const Block& block, const Kernel& kernel, const Gemm& gemm,
                   std::vector<TensorPlace>& places) {
  if (gemm.batch > 1) return;
  for (const KernelTensors* side : {&kernel.writes, &kernel.reads}) {
    const std::vector<TensorId> together = side->all_in(Slot::operand);
    if (together.size() > 1) put_side_by_side(block, together, gemm.m, places);
  }
}

const Gemm* product_that_makes(const Block& block, TensorId tensor) {
  for (const Kernel& kernel : block.forward) {
    const auto* gemm = std::get_if<Gemm>(&kernel.what);
    if (gemm != nullptr && std::ranges::find(kernel.writes, tensor) != kernel.writes.end()) return gemm;
  }
  return nullptr;
}

// Gate and up projection form one operand of an activation, and so do their gradients in the backward pass.
// This also holds where a separate GEMM writes each.
void place_activation(const Block& block, const std::vector<TensorId>& ids, const Gemm* product,
                      std::vector<TensorPlace>& places) {
  if (ids.size() < 2 || product == nullptr) return;
  if (places[static_cast<std::size_t>(ids[0])].has_own_matrix())
    put_side_by_side(block, ids, product->m, places);
}

void place_pointwise(const Block& block, const Kernel& kernel, Pointwise kind,
                     std::vector<TensorPlace>& places) {
  if (kind == Pointwise::quantize || kind == Pointwise::quantize_blocks)
    place_quantized(block, kernel, places);
  if (kind == Pointwise::activation)
    place_activation(block, kernel.reads.all_in(Slot::operand),
                     product_that_makes(block, kernel.reads.in(Slot::operand)), places);
  if (kind == Pointwise::activation_backward)
    place_activation(block, kernel.writes.all_in(Slot::operand),
                     product_that_makes(block, kernel.reads.in(Slot::input)), places);
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
      if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) place_product(block, kernel, *gemm, places);
      if (const auto* kind = std::get_if<Pointwise>(&kernel.what))
        place_pointwise(block, kernel, *kind, places);
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
  if (tensor.element_bytes == 1 && (precision != Precision::fp8 || tensor.use == TensorUse::mask)) return Type::uint8;
  if (tensor.element_bytes == 1) return tensor.role == TensorRole::gradient ? Type::fp8_e5m2 : Type::fp8_e4m3;
  return precision == Precision::fp16 ? Type::fp16 : Type::bf16;
}

kernels::Type type_in(const Block& block, const Kernel& kernel, TensorId matrix, Precision precision) {
  const Tensor& tensor = block.tensors[static_cast<std::size_t>(matrix)];
  return matrix == kernel.reads.in(Slot::weight) && multiplies_quantized(block, kernel, precision)
             ? kernels::Type::fp8_e4m3
             : type_of(tensor, precision);
}

const Gemm* product_of(const Block& block, TensorId tensor) {
  for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight}) {
    for (const Kernel& kernel : *kernels) {
      const auto* gemm = std::get_if<Gemm>(&kernel.what);
      if (gemm != nullptr &&
          std::find(kernel.reads.begin(), kernel.reads.end(), tensor) != kernel.reads.end())
        return gemm;
    }
  }
  return nullptr;
}

}  // namespace rehearse
