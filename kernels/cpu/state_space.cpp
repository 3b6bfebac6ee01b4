#include "kernels/cpu/state_space.h"

#include <cmath>
#include <vector>

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

// Beyond it, log(1 + exp(x)) equals x to the last bit.
constexpr float kLinear = 20;

float softplus(float x) {
  return x > kLinear ? x : std::log1p(std::exp(x));
}

}  // namespace

ScanStep ScanHead::step(const Tensor& raw, std::int64_t place) const {
  ScanStep step;
  step.raw = number(raw, place) + bias_;
  step.delta = softplus(step.raw);
  step.decay = std::exp(rate() * step.delta);
  return step;
}

float ScanHead::rate() const {
  return -std::exp(log_);
}

void ScanHead::advance(const Tensor& convolved, const ScanStep& step, std::int64_t place, const float* from,
                       float* to) const {
  const float *x = own(convolved, place), *in = b(convolved, place);
  for (std::int64_t p = 0; p < head_dim; ++p) {
    const float scaled = step.delta * x[p];
    const float* old = from + p * state;
    float* next = to + p * state;
#pragma omp simd
    for (std::int64_t n = 0; n < state; ++n) next[n] = step.decay * old[n] + scaled * in[n];
  }
}

void require_scan(const ScanShape& shape, const Tensor& convolved) {
  require(shape.heads % shape.groups == 0, "a scan's heads do not divide into its groups");
  require(convolved.columns == shape.inner() + 2 * shape.groups * shape.state,
          "a scan's columns are not those of x, B and C");
}

void run(const Scan& call) {
  const ScanShape& shape = call.shape;
  require_scan(shape, call.convolved);
  for_each(shape.tokens.sequences * shape.heads, [&](std::int64_t unit) {
    const ScanHead head(call, unit / shape.heads, unit % shape.heads);
    std::vector<float> states(static_cast<std::size_t>(shape.head_dim * shape.state));
    for (std::int64_t place = 0; place < shape.tokens.length; ++place) {
      head.advance(call.convolved, head.step(call.step, place), place, states.data(), states.data());
      const float *x = head.own(call.convolved, place), *c = head.c(call.convolved, place);
      const float* gate = head.own(call.gate, place);
      float *ungated = head.own(call.ungated, place), *output = head.own(call.output, place);
      for (std::int64_t p = 0; p < shape.head_dim; ++p) {
        const float* of_row = states.data() + p * shape.state;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t n = 0; n < shape.state; ++n) sum += of_row[n] * c[n];
        ungated[p] = sum + head.skip * x[p];
        output[p] = ungated[p] * silu(gate[p]);
      }
    }
  });
}

}  // namespace rehearse::kernels::cpu
