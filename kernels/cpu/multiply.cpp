#include <algorithm>

#include "kernels/cpu/access.h"
#include "kernels/cpu/blas.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

constexpr std::int64_t kRowGrain = 16;  // rows of a thread's share: a multiple of OpenBLAS's tiles

// Rows first .. last of one GEMM.
void multiply_rows(const Multiply& call, std::int64_t product, std::int64_t first, std::int64_t last) {
  float* c = row(call.c, first) + product * call.step_c;
  const float* a = data(call.a) + product * call.step_a + first * (call.transpose_a ? 1 : call.a.stride);
  const float* b = data(call.b) + product * call.step_b;
  const bool add = call.accumulate || call.bias.given();
  if (call.bias.given()) {
    const float* bias = data(call.bias);
    for (std::int64_t i = 0; i < last - first; ++i) {
      float* out = c + i * call.c.stride;
      for (std::int64_t j = 0; j < call.n(); ++j) out[j] = bias[j] + (call.accumulate ? out[j] : 0.0F);
    }
  }
  sgemm(last - first, call.n(), call.k(), 1, {a, call.a.stride, call.transpose_a},
        {b, call.b.stride, call.transpose_b}, add ? 1.0F : 0.0F, c, call.c.stride);
}

}  // namespace

void run(const Multiply& call) {
  require(call.k() == (call.transpose_b ? call.b.columns : call.b.rows) &&
              call.m() == (call.transpose_a ? call.a.columns : call.a.rows) &&
              call.n() == (call.transpose_b ? call.b.rows : call.b.columns),
          "the operands of a product do not fit each other");
  if (call.batch >= team && call.batch > 1) {
    for_each(call.batch, [&](std::int64_t product) { multiply_rows(call, product, 0, call.m()); });
    return;
  }
  for (std::int64_t product = 0; product < call.batch; ++product) {
    for_stretches(call.m(), kRowGrain,
                  [&](std::int64_t first, std::int64_t last) { multiply_rows(call, product, first, last); });
  }
}

}  // namespace rehearse::kernels::cpu
