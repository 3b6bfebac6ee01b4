#include "launch/views.h"

#include <stdexcept>

namespace rehearse {

kernels::Tensor Launch::rows(TensorId id, std::int64_t count) const {
  const TensorPlace& place = bound.places[static_cast<std::size_t>(id)];
  if (place.has_own_matrix()) return part(id, 0, count, elements(id) / count);
  kernels::Tensor matrix(bound.memory(place.matrix), type_of(tensor(id), bound.plan.precision), place.rows,
                         place.matrix_columns);
  return matrix.slice(place.first_column, place.columns);
}

kernels::Tensor Launch::with_neighbour(const std::vector<TensorId>& ids, std::size_t i,
                                       std::int64_t count) const {
  kernels::Tensor view = rows(ids.at(i), count);
  const auto place = [this](TensorId id) { return bound.places[static_cast<std::size_t>(id)]; };
  if (i + 1 < ids.size() && place(ids[i + 1]).matrix == place(ids[i]).matrix)
    view.columns += place(ids[i + 1]).columns;
  return view;
}

kernels::Tensor Launch::part(TensorId id, std::int64_t first, std::int64_t height, std::int64_t width) const {
  const kernels::Type type = type_of(tensor(id), bound.plan.precision);
  auto* memory = static_cast<std::byte*>(bound.memory(bound.places[static_cast<std::size_t>(id)].matrix));
  return {memory + static_cast<std::size_t>(first) * kernels::bytes_of(type), type, height, width};
}

kernels::Tensor Launch::integers(TensorId id, std::int64_t height) const {
  kernels::Tensor view = part(id, 0, height, elements(id) / height);
  view.type = kernels::Type::int32;
  return view;
}

kernels::Tokens Launch::tokens() const {
  return {bound.shape.batch, bound.shape.seq, true, positions(first_place(), bound.shape.seq)};
}

BoundBlock bind_block(const Block& block, const Model& model, const Plan& plan,
                      std::function<void*(TensorId)> memory) {
  BoundBlock bound{
      block, model, plan, shape_on_one_rank(model, plan), place_tensors(block), std::move(memory), {}};
  return bound;
}

std::vector<kernels::Call> calls_of(const BoundBlock& bound, const Kernel& kernel) {
  const Launch launch{bound, kernel};
  if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) return multiply_calls(launch, *gemm);
  if (const auto* attention = std::get_if<Attention>(&kernel.what))
    return attention_calls(launch, *attention);
  if (const auto* scan = std::get_if<rehearse::Scan>(&kernel.what))
    return scan->backward ? scan_backward_calls(launch) : scan_calls(launch);
  if (const auto* kind = std::get_if<Pointwise>(&kernel.what)) return pointwise_calls(launch, *kind);
  throw std::logic_error("collective " + kernel.name + " is no call of a device");
}

}  // namespace rehearse
