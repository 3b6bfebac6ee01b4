#include <cmath>

#include "kernels/cpu/access.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

// y = (x - mean) scale.
struct Moments {
  float mean = 0, scale = 1;
};

Moments moments(const NormShape& shape, const float* x, std::int64_t width) {
  float sum = 0;
  if (shape.centred) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < width; ++c) sum += x[c];
  }
  const float mean = sum / static_cast<float>(width);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
  return {mean, 1.0F / std::sqrt(squares / static_cast<float>(width) + shape.epsilon)};
}

std::int64_t width_of(const NormShape& shape, const Tensor& tensor) {
  require(tensor.columns % shape.groups == 0, "a norm's columns do not divide into its groups");
  return tensor.columns / shape.groups;
}

// Distance from the columns of one vector's weight to the next one's; 0 where all share it.
std::int64_t weight_step(const NormShape& shape, const Tensor& weight, const Tensor& input) {
  return weight.columns == input.columns ? width_of(shape, input) : 0;
}

// Calls body(row, first column, width) for each vector of a row.
template <typename Body>
void for_vectors(const NormShape& shape, const Tensor& like, const Body& body) {
  const std::int64_t width = width_of(shape, like);
  for_each(like.rows * shape.groups,
           [&](std::int64_t vector) { body(vector / shape.groups, vector % shape.groups * width, width); });
}

}  // namespace

void run(const Norm& call) {
  const std::int64_t step = weight_step(call.shape, call.weight, call.input);
  for_vectors(call.shape, call.input, [&](std::int64_t r, std::int64_t first, std::int64_t width) {
    const std::int64_t own = first / width * step;
    const float* weight = data(call.weight) + own;
    const float* bias = call.bias.given() ? data(call.bias) + own : nullptr;
    const float* x = row(call.input, r) + first;
    float* y = row(call.output, r) + first;
    const Moments m = moments(call.shape, x, width);
    if (bias == nullptr) {
      for (std::int64_t c = 0; c < width; ++c) y[c] = (x[c] - m.mean) * m.scale * weight[c];
    } else {
      for (std::int64_t c = 0; c < width; ++c) y[c] = (x[c] - m.mean) * m.scale * weight[c] + bias[c];
    }
  });
}

// dx = scale (g - mean(g) - y mean(g y)) with g = dy weight and y the normalised input; RMSNorm has no
// mean(g).
void run(const NormInputGradient& call) {
  const std::int64_t step = weight_step(call.shape, call.weight, call.input);
  for_vectors(call.shape, call.input, [&](std::int64_t r, std::int64_t first, std::int64_t width) {
    const float* weight = data(call.weight) + first / width * step;
    const float* x = row(call.input, r) + first;
    const float* gradient = row(call.output_gradient, r) + first;
    float* out = row(call.input_gradient, r) + first;
    const Moments m = moments(call.shape, x, width);
    float sum = 0, with_input = 0;
#pragma omp simd reduction(+ : sum, with_input)
    for (std::int64_t c = 0; c < width; ++c) {
      const float g = gradient[c] * weight[c];
      sum += g;
      with_input += g * (x[c] - m.mean) * m.scale;
    }
    const float mean = call.shape.centred ? sum / static_cast<float>(width) : 0.0F;
    with_input /= static_cast<float>(width);
    for (std::int64_t c = 0; c < width; ++c) {
      const float y = (x[c] - m.mean) * m.scale;
      out[c] = m.scale * (gradient[c] * weight[c] - mean - y * with_input);
    }
  });
}

// Every thread sums its own columns, so each thread first reads the moments of all rows.
void run(const NormWeightGradient& call) {
  const std::int64_t width = width_of(call.shape, call.input);
  const std::int64_t step = weight_step(call.shape, call.weight_gradient, call.input);
  for_stretches(width, kLineFloats, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t vector = 0; vector < call.input.rows * call.shape.groups; ++vector) {
      const std::int64_t group = vector % call.shape.groups, offset = group * width;
      float* weight = data(call.weight_gradient) + group * step;
      float* bias = call.bias_gradient.given() ? data(call.bias_gradient) + group * step : nullptr;
      const float* x = row(call.input, vector / call.shape.groups) + offset;
      const float* gradient = row(call.output_gradient, vector / call.shape.groups) + offset;
      const Moments m = moments(call.shape, x, width);
      for (std::int64_t c = first; c < last; ++c) weight[c] += gradient[c] * (x[c] - m.mean) * m.scale;
      for (std::int64_t c = first; bias != nullptr && c < last; ++c) bias[c] += gradient[c];
    }
  });
}

}  // namespace rehearse::kernels::cpu
