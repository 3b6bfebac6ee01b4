// Where are the operands of one head's recurrence, and how is one step computed?
#pragma once

#include "kernels/cpu/access.h"

namespace rehearse::kernels::cpu {

// Values that a token's `step` determines.
struct ScanStep {
  float raw = 0;  // with its bias
  float delta = 0, decay = 0;
};

// One head of one sequence.
class ScanHead {
 public:
  // `call` is a Scan or a ScanInputGradient.
  template <typename Call>
  ScanHead(const Call& call, std::int64_t sequence, std::int64_t head)
      : head_dim(call.shape.head_dim),
        state(call.shape.state),
        skip(data(call.skip)[head]),
        places_(places_of(call.shape.tokens, sequence)),
        head_(head),
        of_b_(call.shape.inner() + head / (call.shape.heads / call.shape.groups) * state),
        of_c_(of_b_ + call.shape.groups * state),
        bias_(data(call.step_bias)[head]),
        log_(data(call.decay_log)[head]) {}

  // First columns of the head, of its group's B and of its group's C at a place. The tensors have the layout
  // of x or of `convolved`.
  float* own(const Tensor& like_x, std::int64_t place) const {
    return row(like_x, row_of(place)) + head_ * head_dim;
  }
  float* b(const Tensor& convolved, std::int64_t place) const {
    return row(convolved, row_of(place)) + of_b_;
  }
  float* c(const Tensor& convolved, std::int64_t place) const {
    return row(convolved, row_of(place)) + of_c_;
  }
  // The one number of the head at a place.
  float& number(const Tensor& by_head, std::int64_t place) const {
    return row(by_head, row_of(place))[head_];
  }

  ScanStep step(const Tensor& raw, std::int64_t place) const;
  // The derivative of log(decay) by delta. The gradient of decay_log is the gradient of log(decay) times
  // delta times rate().
  float rate() const;
  // `to` = decay `from` + delta x B^T; both may be the same.
  void advance(const Tensor& convolved, const ScanStep& step, std::int64_t place, const float* from,
               float* to) const;

  const std::int64_t head_dim, state;
  const float skip;

 private:
  std::int64_t row_of(std::int64_t place) const { return places_.first + place * places_.step; }

  Places places_;
  std::int64_t head_, of_b_, of_c_;
  float bias_, log_;
};

void require_scan(const ScanShape& shape, const Tensor& convolved);

}  // namespace rehearse::kernels::cpu
