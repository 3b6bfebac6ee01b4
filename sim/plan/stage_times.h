// What the seconds of a stage's ops consist of.
#pragma once

#include <vector>

namespace rehearse {

// Seconds of one op on its compute stream, by cause.
struct TimeParts {
  double compute = 0;
  double recompute = 0;
  double optimizer = 0;
  double tp = 0;  // tensor-parallel collectives that nothing hides
  double cp = 0;
  double ep = 0;

  double total() const { return compute + recompute + optimizer + tp + cp + ep; }
  TimeParts& operator+=(const TimeParts& other);
  TimeParts operator*(double factor) const;
};

struct StageTimes {
  TimeParts forward;
  TimeParts backward_input;  // with recompute; op B is this, backward_weight and side_by_side
  TimeParts backward_weight;
  TimeParts side_by_side = {};  // negative: collectives of either half that a GEMM of the other hides in op B
};

// By stage, and the optimizer step by pipeline rank.
struct OpTimes {
  std::vector<StageTimes> stages;
  std::vector<TimeParts> step;
};

}  // namespace rehearse
