#include <algorithm>

#include "kernels/cpu/access.h"
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

// The inputs of one channel that one token sees: those of taps `first` to `width` - 1.
struct Window {
  std::int64_t first = 0, width = 0, oldest = 0, step = 1;  // row of tap i: oldest + i step

  Window(const Tokens& tokens, std::int64_t sequence, std::int64_t place, std::int64_t taps)
      : first(std::max<std::int64_t>(0, taps - 1 - place)), width(taps) {
    const Places places = places_of(tokens, sequence);
    step = places.step;
    oldest = places.first + (place - (taps - 1)) * places.step;
  }
  std::int64_t row_of(std::int64_t tap) const { return oldest + tap * step; }
  std::int64_t own_row() const { return row_of(width - 1); }
};

float before_silu(const Window& window, const Tensor& input, const Tensor& weight, const float* bias,
                  std::int64_t channel) {
  float sum = bias == nullptr ? 0.0F : bias[channel];
  const float* taps = row(weight, channel);
  for (std::int64_t i = window.first; i < window.width; ++i)
    sum += taps[i] * row(input, window.row_of(i))[channel];
  return sum;
}

// body(window, channel, gradient of SiLU's input) for every token. Threads divide channels, as tokens of a
// sequence add to the same gradients.
template <typename Call, typename Body>
void for_slopes(const Call& call, const Body& body) {
  const float* bias = data(call.bias);
  for_stretches(call.input.columns, kLineFloats, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t sequence = 0; sequence < call.tokens.sequences; ++sequence) {
      for (std::int64_t place = 0; place < call.tokens.length; ++place) {
        const Window window(call.tokens, sequence, place, call.weight.columns);
        const float* gradient = row(call.output_gradient, window.own_row());
        for (std::int64_t c = first; c < last; ++c)
          body(window, c, gradient[c] * silu_slope(before_silu(window, call.input, call.weight, bias, c)));
      }
    }
  });
}

}  // namespace

void run(const Convolution& call) {
  const float* bias = data(call.bias);
  const Tokens& tokens = call.tokens;
  for_each(tokens.rows(), [&](std::int64_t unit) {
    const Window window(tokens, unit / tokens.length, unit % tokens.length, call.weight.columns);
    float* out = row(call.output, window.own_row());
    for (std::int64_t c = 0; c < call.input.columns; ++c)
      out[c] = silu(before_silu(window, call.input, call.weight, bias, c));
  });
}

void run(const ConvolutionInputGradient& call) {
  for_slopes(call, [&](const Window& window, std::int64_t c, float slope) {
    row(call.input_gradient, window.own_row())[c] = 0;
    const float* taps = row(call.weight, c);
    for (std::int64_t i = window.first; i < window.width; ++i)
      row(call.input_gradient, window.row_of(i))[c] += taps[i] * slope;
  });
}

void run(const ConvolutionWeightGradient& call) {
  float* bias_gradient = data(call.bias_gradient);
  for_slopes(call, [&](const Window& window, std::int64_t c, float slope) {
    float* taps = row(call.weight_gradient, c);
    for (std::int64_t i = window.first; i < window.width; ++i)
      taps[i] += slope * row(call.input, window.row_of(i))[c];
    if (bias_gradient != nullptr) bias_gradient[c] += slope;
  });
}

}  // namespace rehearse::kernels::cpu
