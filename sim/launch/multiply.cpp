#include <algorithm>

#include "launch/views.h"

namespace rehearse {

namespace {

using kernels::Multiply;

// Leading reads that are side by side: the first one, widened to cover all of them.
kernels::Tensor operand(const Launch& launch, std::int64_t rows, std::int64_t columns) {
  kernels::Tensor view = launch.read(0, rows);
  view.columns = columns;
  return view;
}

TensorId weight_of(const Launch& launch) {
  return launch.kernel.reads.in(Slot::weight);
}

TensorId input_of(const Launch& launch) {
  return launch.kernel.reads.in(Slot::input);
}

// The weight of an fp8 GEMM, as `height` x `width`. By rows, it starts at element `first`. By columns, it
// follows all rows, one expert after the other.
kernels::Tensor fp8_weight(const Launch& launch, TensorId id, bool by_columns, std::int64_t first,
                           std::int64_t height, std::int64_t width) {
  kernels::Tensor view = launch.part(id, 0, height, width);
  view.type = kernels::Type::fp8_e4m3;
  const std::int64_t offset = first + (by_columns ? launch.elements(id) : 0);
  view.data = static_cast<std::byte*>(view.data) + offset;
  return view;
}

// The first column of a layer's output that this GEMM writes. A recomputed GEMM may write fewer columns.
std::int64_t first_of_layer(const Launch& launch, TensorId weight) {
  const std::vector<Kernel>& kernels = launch.bound.block.forward;
  const auto whole = std::ranges::find_if(kernels, [weight](const Kernel& kernel) {
    return std::holds_alternative<Gemm>(kernel.what) && kernel.reads.in(Slot::weight) == weight;
  });
  const std::int64_t first = launch.first_column(launch.kernel.writes[0]);
  return whole == kernels.end() ? first : first - launch.first_column(whole->writes[0]);
}

// y = x w^T + bias, or one expert after the other. A part of the columns needs that part of the weight.
Multiply forward(const Launch& launch, const Gemm& gemm) {
  Multiply call;
  call.a = operand(launch, gemm.m * gemm.batch, gemm.k);
  call.a.rows = gemm.m;
  const TensorId weight = weight_of(launch);
  const std::int64_t first = first_of_layer(launch, weight);
  call.b = launch.multiplies_quantized() ? fp8_weight(launch, weight, false, first * gemm.k, gemm.n, gemm.k)
                                         : launch.part(weight, first * gemm.k, gemm.n, gemm.k);
  call.transpose_b = true;
  call.c = launch.write(0, gemm.m * gemm.batch);
  call.c.rows = gemm.m;
  call.c.columns = gemm.n;
  const TensorId bias = launch.kernel.reads.in(Slot::bias);
  if (bias >= 0) call.bias = launch.part(bias, first, 1, gemm.n);
  return call;
}

// dx = dy w; in fp8 dy (w^T)^T.
Multiply input_gradient(const Launch& launch, const Gemm& gemm) {
  Multiply call;
  call.a = operand(launch, gemm.m * gemm.batch, gemm.k);
  call.a.rows = gemm.m;
  call.transpose_b = launch.multiplies_quantized();
  call.b = call.transpose_b ? fp8_weight(launch, weight_of(launch), true, 0, gemm.n, gemm.k)
                            : launch.part(weight_of(launch), 0, gemm.k, gemm.n);
  call.c = launch.write(0, gemm.m * gemm.batch);
  call.c.rows = gemm.m;
  return call;
}

// dw += dy^T x.
Multiply weight_gradient(const Launch& launch, const Gemm& gemm) {
  Multiply call;
  call.a = operand(launch, gemm.k * gemm.batch, gemm.m);
  call.a.rows = gemm.k;
  call.transpose_a = true;
  call.b = launch.rows(input_of(launch), gemm.k * gemm.batch);
  call.b.rows = gemm.k;
  call.c = launch.part(launch.kernel.writes[0], 0, gemm.m, gemm.n);
  call.accumulate = true;
  return call;
}

// dw += dy^T (x^T)^T, for fp8 operands, which are stored by columns. Rows of the experts are side by side in
// them.
Multiply fp8_weight_gradient(const Launch& launch, const Gemm& gemm) {
  Multiply call;
  const std::int64_t rows = gemm.k * gemm.batch;
  call.a = launch.part(launch.kernel.reads[0], 0, gemm.m, rows);
  call.b = launch.part(input_of(launch), 0, gemm.n, rows);
  call.a.columns = call.b.columns = gemm.k;
  call.transpose_b = true;
  call.c = launch.part(launch.kernel.writes[0], 0, gemm.m, gemm.n);
  call.accumulate = true;
  return call;
}

// The experts' operands follow one another, or are side by side if quantized by columns.
void step_through_experts(Multiply& call, std::int64_t batch) {
  const auto step = [](const kernels::Tensor& operand) {
    return operand.columns < operand.stride ? operand.columns : operand.rows * operand.stride;
  };
  call.batch = batch;
  call.step_a = step(call.a);
  call.step_b = step(call.b);
  call.step_c = call.c.rows * call.c.stride;
}

// Cuts the rows of a and c into `chunks` parts.
Calls cut(const Multiply& whole, std::int64_t chunks) {
  Calls calls;
  const auto move_down = [](kernels::Tensor& tensor, std::int64_t rows) {
    const std::int64_t elements = rows * tensor.stride;
    tensor.data = static_cast<std::byte*>(tensor.data) +
                  static_cast<std::size_t>(elements) * kernels::bytes_of(tensor.type);
  };
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = whole.m() * chunk / chunks, last = whole.m() * (chunk + 1) / chunks;
    Multiply call = whole;
    move_down(call.a, first);
    move_down(call.c, first);
    call.a.rows = call.c.rows = last - first;
    calls.push_back(call);
  }
  return calls;
}

}  // namespace

Calls multiply_calls(const Launch& launch, const Gemm& gemm) {
  if (gemm.attention != AttentionProduct::none) return unfused_core_calls(launch, gemm.attention);
  const bool in_fp8 = launch.multiplies_quantized();
  Multiply call = gemm.pass == GemmPass::weight_gradient
                      ? (in_fp8 ? fp8_weight_gradient(launch, gemm) : weight_gradient(launch, gemm))
                  : gemm.pass == GemmPass::input_gradient ? input_gradient(launch, gemm)
                                                          : forward(launch, gemm);
  if (gemm.batch > 1) step_through_experts(call, gemm.batch);
  return gemm.chunks > 1 ? cut(call, gemm.chunks) : Calls{call};
}

}  // namespace rehearse
