#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/access.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"
#include "kernels/philox.h"

namespace rehearse::kernels::cpu {

namespace {

using Addends = std::array<const float*, std::tuple_size_v<decltype(Add::inputs)>>;

// One row in one pass. Each element of all addends is read before it is written, so the output may be an
// addend.
template <std::size_t kGiven>
void sum(const Addends& addends, float* out, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    float total = addends[0][c];
    for (std::size_t i = 1; i < kGiven; ++i) total += addends[i][c];
    out[c] = total;
  }
}

}  // namespace

void run(const Add& call) {
  for_each(call.output.rows, [&](std::int64_t r) {
    Addends addends{};
    std::size_t given = 0;
    for (const Tensor& input : call.inputs)
      if (input.given()) addends[given++] = row(input, r);
    float* out = row(call.output, r);
    const std::int64_t columns = call.output.columns;
    if (given == 1) sum<1>(addends, out, columns);
    if (given == 2) sum<2>(addends, out, columns);
    if (given == 3) sum<3>(addends, out, columns);
    if (given == 4) sum<4>(addends, out, columns);
    if (call.bias.given()) {
      const float* bias = data(call.bias);
      for (std::int64_t c = 0; c < call.output.columns; ++c) out[c] += bias[c];
    }
  });
}

void run(const Dropout& call) {
  const float keep = 1.0F / (1.0F - call.rate);
  for_each(call.output.rows, [&](std::int64_t r) {
    const float* in = row(call.input, r);
    const float* bias = data(call.bias);
    const float* residual = call.residual.given() ? row(call.residual, r) : nullptr;
    float* out = row(call.output, r);
    std::uint8_t* mask = row<std::uint8_t>(call.mask, r);
    for (std::int64_t c = 0; c < call.output.columns; ++c) {
      const std::int64_t i = r * call.output.columns + c;
      const std::int64_t number = call.draws.number(i);
      mask[c] = philox_uniform(call.seed, static_cast<std::uint64_t>(number)) >= call.rate ? 1 : 0;
      const float value = in[c] + (bias == nullptr ? 0.0F : bias[c]);
      out[c] = (residual == nullptr ? 0.0F : residual[c]) + (mask[c] != 0 ? keep * value : 0.0F);
    }
  });
}

void run(const DropoutBackward& call) {
  const float keep = 1.0F / (1.0F - call.rate);
  for_each(call.output_gradient.rows, [&](std::int64_t r) {
    const float* gradient = row(call.output_gradient, r);
    const std::uint8_t* mask = row<std::uint8_t>(call.mask, r);
    float* out = row(call.input_gradient, r);
    for (std::int64_t c = 0; c < call.output_gradient.columns; ++c) {
      out[c] = mask[c] != 0 ? keep * gradient[c] : 0.0F;
    }
  });
}

void run(const BiasGradient& call) {
  float* sum = data(call.bias_gradient);
  for_stretches(call.output_gradient.columns, kLineFloats, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = 0; r < call.output_gradient.rows; ++r) {
      const float* gradient = row(call.output_gradient, r);
      for (std::int64_t c = first; c < last; ++c) sum[c] += gradient[c];
    }
  });
}

void run(const Cast& call) {
  for_each(call.input.rows,
           [&](std::int64_t r) { std::copy_n(row(call.input, r), call.input.columns, row(call.output, r)); });
}

void run(const Quantize& call) {
  const float factor = call.scale.given() ? 1.0F / *data(call.scale) : 1.0F;
  for_each(call.input.rows, [&](std::int64_t r) {
    for (std::int64_t c = 0; c < call.input.columns; ++c) {
      const float value = row(call.input, r)[c] * factor;
      if (call.rows.given()) row(call.rows, r)[c] = value;
      if (call.columns.given()) row(call.columns, c)[r] = value;
    }
  });
  if (!call.maximum.given()) return;
  float& largest = *data(call.maximum);
  for (std::int64_t r = 0; r < call.input.rows; ++r)
    for (std::int64_t c = 0; c < call.input.columns; ++c)
      largest = std::max(largest, std::abs(row(call.input, r)[c]));
}

void run(const Randomise& call) {
  for_each(call.output.rows, [&](std::int64_t r) {
    float* out = row(call.output, r);
    for (std::int64_t c = 0; c < call.output.columns; ++c) {
      const auto number = static_cast<std::uint64_t>(call.draws.number(r * call.output.columns + c));
      out[c] = call.mean + call.spread * (2.0F * philox_uniform(call.seed, number) - 1.0F);
    }
  });
}

}  // namespace rehearse::kernels::cpu
