#include "launch/views.h"

namespace rehearse {

namespace {

using kernels::Multiply;

// Leading reads that lie side by side: the first, widened to all of them.
kernels::Tensor operand(const Launch& launch, std::int64_t rows, std::int64_t columns) {
  kernels::Tensor view = launch.read(0, rows);
  view.columns = columns;
  return view;
}

TensorId last_read(const Launch& launch) {
  return launch.kernel.reads.back();
}

// y = x w^T + bias, or one expert after the other. A part of the columns needs its part of the weight.
Multiply forward(const Launch& launch, const Gemm& gemm) {
  Multiply call;
  call.a = operand(launch, gemm.m * gemm.batch, gemm.k);
  call.a.rows = gemm.m;
  const std::int64_t first = launch.first_column(launch.kernel.writes[0]);
  call.b = launch.part(launch.kernel.reads[1], first * gemm.k, gemm.n, gemm.k);
  call.transpose_b = true;
  call.c = launch.write(0, gemm.m * gemm.batch);
  call.c.rows = gemm.m;
  call.c.columns = gemm.n;
  if (launch.reads_more_than(2)) call.bias = launch.part(launch.kernel.reads[2], first, 1, gemm.n);
  return call;
}

// dx = dy w.
Multiply input_gradient(const Launch& launch, const Gemm& gemm) {
  Multiply call;
  call.a = operand(launch, gemm.m * gemm.batch, gemm.k);
  call.a.rows = gemm.m;
  call.b = launch.part(last_read(launch), 0, gemm.k, gemm.n);
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
  call.b = launch.rows(last_read(launch), gemm.k * gemm.batch);
  call.b.rows = gemm.k;
  call.c = launch.part(launch.kernel.writes[0], 0, gemm.m, gemm.n);
  call.accumulate = true;
  return call;
}

// The experts' operands lie one after the other.
void step_through_experts(Multiply& call, std::int64_t batch) {
  call.batch = batch;
  call.step_a = call.a.rows * call.a.stride;
  call.step_b = call.b.rows * call.b.stride;
  call.step_c = call.c.rows * call.c.stride;
}

// Rows of a and c, `chunks` times.
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
  if (is_unfused_core(launch)) return unfused_core_calls(launch);
  Multiply call = launch.phase == Phase::backward_weight  ? weight_gradient(launch, gemm)
                  : launch.phase == Phase::backward_input ? input_gradient(launch, gemm)
                                                          : forward(launch, gemm);
  if (gemm.batch > 1) step_through_experts(call, gemm.batch);
  return gemm.chunks > 1 ? cut(call, gemm.chunks) : Calls{call};
}

}  // namespace rehearse
