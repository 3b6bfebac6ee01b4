#include "kernels/cpu/access.h"
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

constexpr float kRoot = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kCube = 0.044715F;

float gelu(float x) {
  return 0.5F * x * (1.0F + hyperbolic_tangent(kRoot * (x + kCube * x * x * x)));
}

float gelu_slope(float x) {
  const float t = hyperbolic_tangent(kRoot * (x + kCube * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kRoot * (1.0F + 3.0F * kCube * x * x);
}

void gelu_row(const float* x, float scale, float* y, std::int64_t width) {
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) y[c] = scale * gelu(x[c]);
}

void swiglu_row(const float* x, float scale, float* y, std::int64_t width) {
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) y[c] = scale * x[c] * sigmoid(x[c]) * x[width + c];
}

void squared_relu_row(const float* x, float scale, float* y, std::int64_t width) {
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) y[c] = x[c] > 0 ? scale * x[c] * x[c] : 0;
}

// All return the gradient of the row's weight: the sum of output gradient times unscaled output.
float gelu_row_backward(const float* gradient, const float* x, float scale, float* out, std::int64_t width) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t c = 0; c < width; ++c) {
    dot += gradient[c] * gelu(x[c]);
    out[c] = scale * gradient[c] * gelu_slope(x[c]);
  }
  return dot;
}

float swiglu_row_backward(const float* gradient, const float* x, float scale, float* out,
                          std::int64_t width) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t c = 0; c < width; ++c) {
    const float gate = x[c], up = x[width + c], s = sigmoid(gate), g = scale * gradient[c];
    dot += gradient[c] * gate * s * up;
    out[c] = g * up * s * (1.0F + gate * (1.0F - s));
    out[width + c] = g * gate * s;
  }
  return dot;
}

float squared_relu_row_backward(const float* gradient, const float* x, float scale, float* out,
                                std::int64_t width) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t c = 0; c < width; ++c) {
    const float positive = x[c] > 0 ? x[c] : 0;
    dot += gradient[c] * positive * positive;
    out[c] = scale * gradient[c] * 2 * positive;
  }
  return dot;
}

struct Rows {
  decltype(&gelu_row) forward;
  decltype(&gelu_row_backward) backward;
};

// By kind.
constexpr Rows kRows[] = {{gelu_row, gelu_row_backward},
                          {swiglu_row, swiglu_row_backward},
                          {squared_relu_row, squared_relu_row_backward}};

}  // namespace

void run(const Activation& call) {
  const float* weights = data(call.weights);
  for_each(call.output.rows, [&](std::int64_t r) {
    const float scale = weights == nullptr ? 1.0F : weights[r];
    kRows[static_cast<std::size_t>(call.kind)].forward(row(call.input, r), scale, row(call.output, r),
                                                       call.output.columns);
  });
}

void run(const ActivationBackward& call) {
  const float* weights = data(call.weights);
  float* weights_gradient = data(call.weights_gradient);
  for_each(call.output_gradient.rows, [&](std::int64_t r) {
    const float scale = weights == nullptr ? 1.0F : weights[r];
    const float dot = kRows[static_cast<std::size_t>(call.kind)].backward(
        row(call.output_gradient, r), row(call.input, r), scale, row(call.input_gradient, r),
        call.output_gradient.columns);
    if (weights_gradient != nullptr) weights_gradient[r] = dot;
  });
}

}  // namespace rehearse::kernels::cpu
