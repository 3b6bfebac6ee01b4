#include <cmath>

#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

Case product(Draw& draw) {
  Multiply shape;
  const std::int64_t m = 8 * draw.size(1, 24), n = 8 * draw.size(1, 24), k = 8 * draw.size(1, 40);
  shape.batch = draw.coin() ? draw.size(2, 4) : 1;
  shape.transpose_a = draw.coin();
  shape.transpose_b = draw.coin();
  shape.accumulate = draw.coin();
  shape.step_a = m * k;
  shape.step_b = n * k;
  shape.step_c = m * n;
  const bool biased = shape.batch == 1 && !shape.accumulate && draw.coin();
  const std::size_t a = draw.of(shape.batch * m, k), b = draw.of(shape.batch * k, n),
                    c = draw.out(shape.batch * m, n), bias = draw.of(1, n);
  return draw.finish(
      [=](const Tensors& t) {
        Multiply call = shape;
        const auto view = [](const Tensor& whole, std::int64_t rows, std::int64_t columns) {
          return Tensor(whole.data, whole.type, rows, columns);
        };
        call.a = shape.transpose_a ? view(t[a], k, m) : view(t[a], m, k);
        call.b = shape.transpose_b ? view(t[b], n, k) : view(t[b], k, n);
        call.c = view(t[c], m, n);
        if (biased) call.bias = t[bias];
        return call;
      },
      static_cast<double>(k));
}

// Columns of wider matrices, whose rows are not aligned.
Case slices(Draw& draw) {
  const std::int64_t m = 8 * draw.size(1, 8), n = 8 * draw.size(1, 8), k = 8 * draw.size(1, 8);
  const std::size_t a = draw.of(m, 2 * k), b = draw.of(n, k + 8), c = draw.out(m, n + 16);
  return draw.finish(
      [=](const Tensors& t) {
        Multiply call;
        call.a = t[a].slice(8, k);
        call.b = t[b].slice(8, k);
        call.c = t[c].slice(8, n);
        call.transpose_b = true;
        return call;
      },
      static_cast<double>(k));
}

// The fp8 GEMM of the tensor cores: rows times rows, into bf16.
Case fp8_product(Draw& draw) {
  const std::int64_t m = 16 * draw.size(1, 12), n = 16 * draw.size(1, 12), k = 16 * draw.size(1, 20);
  const std::size_t a = draw.of(m, k), b = draw.of(n, k);
  const std::size_t c = draw.out(draw.type == Type::fp32 ? Type::fp32 : Type::bf16, m, n);
  return draw.finish(
      [=](const Tensors& t) {
        Multiply call;
        call.a = t[a];
        call.b = t[b];
        call.c = t[c];
        call.transpose_b = true;
        return call;
      },
      static_cast<double>(k));
}

// A gradient in e5m2 times an operand in e4m3, accumulated in fp32, for experts with adjacent rows.
Case fp8_gradient(Draw& draw) {
  const std::int64_t m = 16 * draw.size(1, 12), n = 16 * draw.size(1, 12), k = 16 * draw.size(1, 20);
  const std::int64_t batch = draw.size(1, 4);
  const Type gradient = draw.type == Type::fp32 ? Type::fp32 : Type::fp8_e5m2;
  const std::size_t a = draw.of(gradient, m, batch * k), b = draw.of(n, batch * k);
  const std::size_t c = draw.out(Type::fp32, batch * m, n);
  Case one = draw.finish(
      [=](const Tensors& t) {
        Multiply call;
        call.a = t[a].slice(0, k);
        call.b = t[b].slice(0, k);
        call.c = Tensor(t[c].data, t[c].type, m, n);
        call.transpose_b = call.accumulate = true;
        call.batch = batch;
        call.step_a = call.step_b = k;
        call.step_c = m * n;
        return call;
      },
      static_cast<double>(k));
  if (draw.type != Type::fp32) one.fp8_steps = std::ceil(static_cast<double>(k) / 32);
  return one;
}

}  // namespace

std::vector<Maker> multiply_cases() {
  return {{"multiply", product},
          {"multiply slices", slices},
          {"multiply fp8", fp8_product, true},
          {"multiply fp8 gradients", fp8_gradient, true}};
}

}  // namespace rehearse::kernels
