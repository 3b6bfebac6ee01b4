#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"
#include "kernels/philox.h"

namespace rehearse::kernels::cpu {

namespace {

constexpr std::int64_t kColumnGrain = 16;  // a cache line of floats

// Turns the heads of one row; `sign` -1 turns back. Safe in place.
void turn(const Rotary& call, const float* in, float* out, std::int64_t heads, std::int64_t width,
          const float* cosines, const float* sines) {
  const std::int64_t half = width / 2;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = in[h * width + i], b = in[h * width + half + i];
      const float s = call.back ? -sines[i] : sines[i];
      out[h * width + i] = a * cosines[i] - b * s;
      out[h * width + half + i] = b * cosines[i] + a * s;
    }
  }
}

using Addends = std::array<const float*, std::tuple_size_v<decltype(Add::inputs)>>;

// One row in one pass: each element is read of all addends before it is written, to one of them or not.
template <std::size_t kGiven>
void sum(const Addends& addends, float* out, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    float total = addends[0][c];
    for (std::size_t i = 1; i < kGiven; ++i) total += addends[i][c];
    out[c] = total;
  }
}

}  // namespace

// Angles are computed once a place and used by all rows and heads that stand there.
void run(const Rotary& call) {
  const std::int64_t width = call.query.columns / call.heads, half = width / 2;
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(width);
    frequencies.push_back(std::pow(static_cast<double>(call.base), exponent));
  }
  for_stretches(call.tokens.length, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<float> cosines(frequencies.size()), sines(frequencies.size());
    for (std::int64_t place = first; place < last; ++place) {
      const auto position = static_cast<double>(position_of_place(call.tokens, place));
      for (std::size_t i = 0; i < frequencies.size(); ++i) {
        cosines[i] = static_cast<float>(std::cos(position * frequencies[i]));
        sines[i] = static_cast<float>(std::sin(position * frequencies[i]));
      }
      for (std::int64_t sequence = 0; sequence < call.tokens.sequences; ++sequence) {
        const Places places = places_of(call.tokens, sequence);
        const std::int64_t r = places.first + place * places.step;
        turn(call, row(call.query, r), row(call.query_output, r), call.heads, width, cosines.data(),
             sines.data());
        turn(call, row(call.key, r), row(call.key_output, r), call.kv_heads, width, cosines.data(),
             sines.data());
      }
    }
  });
}

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
  for_stretches(call.output_gradient.columns, kColumnGrain, [&](std::int64_t first, std::int64_t last) {
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

void run(const Quantise& call) {
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
