#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/access.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

constexpr std::int64_t kGrain = 1024;

}  // namespace

void run(const Adam& call) {
  require(call.master.contiguous() && call.gradient.contiguous(),
          "the optimizer steps through whole tensors");
  const float scale = call.scale.given() ? *data(call.scale) : 1.0F;
  const auto step = static_cast<float>(call.step);
  const float mean_share = 1.0F / (1.0F - std::pow(call.beta1, step));
  const float square_share = 1.0F / (1.0F - std::pow(call.beta2, step));
  const float* gradient = data(call.gradient);
  float *mean = data(call.mean), *square = data(call.square), *master = data(call.master);
  for_stretches(call.master.elements(), kGrain, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t stepped = std::isnan(scale) ? first : last;
#pragma omp simd
    for (std::int64_t i = first; i < stepped; ++i) {
      const float g = scale * gradient[i];
      mean[i] = call.beta1 * mean[i] + (1.0F - call.beta1) * g;
      square[i] = call.beta2 * square[i] + (1.0F - call.beta2) * g * g;
      const float direction = mean[i] * mean_share / (std::sqrt(square[i] * square_share) + call.epsilon);
      master[i] -= call.rate * (direction + call.decay * master[i]);
    }
    if (call.weight.given()) std::copy(master + first, master + last, data(call.weight) + first);
  });
}

// Sums in double, with one partial sum a row: the result does not depend on the number of threads.
void run(const SquareSum& call) {
  double total = 0;
  for (std::int64_t r = 0; r < call.input.rows; ++r) {
    const float* x = row(call.input, r);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < call.input.columns; ++c) sum += static_cast<double>(x[c]) * x[c];
    total += sum;
  }
  *data(call.sum) = static_cast<float>(*data(call.sum) + total);
}

void run(const ClipScale& call) {
  const float sum = *data(call.sum), loss_scale = call.loss_scale > 0 ? call.loss_scale : 1;
  const float clip = std::min(1.0F, call.limit / (std::sqrt(sum) / loss_scale + 1e-6F));
  const bool overflowed = call.loss_scale > 0 && !std::isfinite(sum);
  *data(call.scale) = overflowed ? std::numeric_limits<float>::quiet_NaN() : clip / loss_scale;
}

}  // namespace rehearse::kernels::cpu
