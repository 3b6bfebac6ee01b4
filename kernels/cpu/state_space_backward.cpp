#include <algorithm>
#include <vector>

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"
#include "kernels/cpu/state_space.h"

namespace rehearse::kernels::cpu {

namespace {

constexpr std::int64_t kScanChunk = 64;  // tokens whose states are kept at a time

// One head backward in time. States are kept at chunk starts, and recomputed one chunk at a time.
class HeadBackward {
 public:
  HeadBackward(const ScanInputGradient& call, std::int64_t sequence, std::int64_t head)
      : call_(call),
        head_(call, sequence, head),
        length_(call.shape.tokens.length),
        size_(call.shape.head_dim * call.shape.state),
        starts_(floats((length_ + kScanChunk - 1) / kScanChunk * size_)),
        states_(floats((std::min(length_, kScanChunk) + 1) * size_)),
        gradient_(floats(size_)),
        ungated_gradient_(floats(call.shape.head_dim)) {}

  void run() {
    keep_starts();
    for (std::int64_t first = (length_ - 1) / kScanChunk * kScanChunk; first >= 0; first -= kScanChunk) {
      const std::int64_t last = std::min(length_, first + kScanChunk);
      std::copy_n(starts_.data() + first / kScanChunk * size_, size_, states_.data());
      for (std::int64_t place = first; place < last; ++place) {
        float* before = states_.data() + (place - first) * size_;
        head_.advance(call_.convolved, head_.step(call_.step, place), place, before, before + size_);
      }
      for (std::int64_t place = last - 1; place >= first; --place)
        one_token(place, states_.data() + (place - first) * size_);
    }
  }

 private:
  // Dot products of one row of the state's gradient.
  struct Dots {
    float with_b = 0, with_before = 0;
  };

  static std::vector<float> floats(std::int64_t count) {
    return std::vector<float>(static_cast<std::size_t>(count));
  }

  void keep_starts() {
    std::vector<float>& running = gradient_;  // not needed yet
    for (std::int64_t place = 0; place < length_; ++place) {
      if (place % kScanChunk == 0)
        std::copy_n(running.data(), size_, starts_.data() + place / kScanChunk * size_);
      head_.advance(call_.convolved, head_.step(call_.step, place), place, running.data(), running.data());
    }
    std::fill(running.begin(), running.end(), 0.0F);
  }

  void open_gate(std::int64_t place) {
    const float *gradient = head_.own(call_.output_gradient, place), *gate = head_.own(call_.gate, place);
    const float* ungated = head_.own(call_.ungated, place);
    float* gate_gradient = head_.own(call_.gate_gradient, place);
    for (std::int64_t p = 0; p < head_.head_dim; ++p) {
      ungated_gradient_[static_cast<std::size_t>(p)] = gradient[p] * silu(gate[p]);
      gate_gradient[p] = gradient[p] * ungated[p] * silu_slope(gate[p]);
    }
  }

  // Adds one row's contribution to the gradient of the token's own state, and to those of B and C.
  Dots one_row(std::int64_t place, std::int64_t p, float u, float scaled, const float* before,
               const float* after) {
    const float *b = head_.b(call_.convolved, place), *c = head_.c(call_.convolved, place);
    float *db = head_.b(call_.convolved_gradient, place), *dc = head_.c(call_.convolved_gradient, place);
    float* g = gradient_.data() + p * head_.state;
    float with_b = 0, with_before = 0;
#pragma omp simd reduction(+ : with_b, with_before)
    for (std::int64_t n = 0; n < head_.state; ++n) {
      g[n] += u * c[n];
      dc[n] += u * after[n];
      db[n] += scaled * g[n];
      with_b += g[n] * b[n];
      with_before += g[n] * before[n];
    }
    return {with_b, with_before};
  }

  // `states`: the state before the token, then its own.
  void one_token(std::int64_t place, const float* states) {
    open_gate(place);
    const ScanStep step = head_.step(call_.step, place);
    const float* x = head_.own(call_.convolved, place);
    float* dx = head_.own(call_.convolved_gradient, place);
    float of_delta = 0, of_log_decay = 0;
    for (std::int64_t p = 0; p < head_.head_dim; ++p) {
      const float u = ungated_gradient_[static_cast<std::size_t>(p)];
      const float* before = states + p * head_.state;
      const Dots dots = one_row(place, p, u, step.delta * x[p], before, before + size_);
      dx[p] = head_.skip * u + step.delta * dots.with_b;
      of_delta += x[p] * dots.with_b;
      of_log_decay += step.decay * dots.with_before;
    }
    head_.number(call_.step_gradient, place) = (of_delta + head_.rate() * of_log_decay) * sigmoid(step.raw);
    head_.number(call_.decay_gradient, place) = head_.rate() * step.delta * of_log_decay;
    for (float& each : gradient_) each *= step.decay;
  }

  const ScanInputGradient& call_;
  const ScanHead head_;
  const std::int64_t length_, size_;
  std::vector<float> starts_, states_;
  std::vector<float> gradient_;  // of the state after a token
  std::vector<float> ungated_gradient_;
};

}  // namespace

// One thread handles all heads of a group in turn, as their gradients of B and C add up.
void run(const ScanInputGradient& call) {
  const ScanShape& shape = call.shape;
  require_scan(shape, call.convolved);
  const std::int64_t shared = shape.heads / shape.groups;
  for_each(shape.tokens.sequences * shape.groups, [&](std::int64_t unit) {
    const std::int64_t sequence = unit / shape.groups, first = unit % shape.groups * shared;
    const ScanHead any(call, sequence, first);
    for (std::int64_t place = 0; place < shape.tokens.length; ++place) {
      std::fill_n(any.b(call.convolved_gradient, place), shape.state, 0.0F);
      std::fill_n(any.c(call.convolved_gradient, place), shape.state, 0.0F);
    }
    for (std::int64_t head = first; head < first + shared; ++head) HeadBackward(call, sequence, head).run();
  });
}

void run(const ScanWeightGradient& call) {
  const ScanShape& shape = call.shape;
  require_scan(shape, call.convolved);
  float *of_bias = data(call.step_bias_gradient), *of_decay = data(call.decay_log_gradient);
  float* of_skip = data(call.skip_gradient);
  for_each(shape.heads, [&](std::int64_t head) {
    const std::int64_t first = head * shape.head_dim;
    for (std::int64_t r = 0; r < shape.tokens.rows(); ++r) {
      const float *gradient = row(call.output_gradient, r) + first, *gate = row(call.gate, r) + first;
      const float* x = row(call.convolved, r) + first;
      float dot = 0;
      for (std::int64_t p = 0; p < shape.head_dim; ++p) dot += gradient[p] * silu(gate[p]) * x[p];
      of_skip[head] += dot;
      of_bias[head] += row(call.step_gradient, r)[head];
      of_decay[head] += row(call.decay_gradient, r)[head];
    }
  });
}

}  // namespace rehearse::kernels::cpu
