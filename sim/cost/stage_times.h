// Which parts do the seconds of a stage's ops consist of?
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
  double waits = 0;  // part of `compute` in which the GPU waits for the host; longer kernels hide it

  double total() const { return compute + recompute + optimizer + tp + cp + ep; }
  TimeParts& operator+=(const TimeParts& other);
  TimeParts operator*(double factor) const;
};

// One pass over a stage's layers with experts, seen by two passes that take turns. Seconds of all layers.
struct ExpertPhases {
  double layers = 0;
  double attention = 0;  // kernels before dispatch and after combine
  double experts = 0;    // kernels between them; in backward with the gradients of their weights
  double dispatch = 0;   // all-to-alls, by the forward pass's names
  double combine = 0;
  double taken = 0;  // share of its rate that a kernel loses beside an all-to-all

  ExpertPhases& operator+=(const ExpertPhases& other);
};

// Expert all-to-alls of one microbatch's forward pass run beside kernels of another microbatch's backward
// pass, and the reverse. This is the number of hidden seconds in each pass, layer by layer. Megatron-LM
// (model_chunk_schedule_plan.py, run) and DualPipe run
//   combine, backward | dispatch, forward; dispatch, backward | combine, forward
//   attention, forward | experts, backward; experts, forward  | attention, backward
// side by side. Each column starts when the one before has ended.
struct HiddenExchanges {
  double forward = 0, backward = 0;
};
HiddenExchanges hidden_exchanges(const ExpertPhases& forward, const ExpertPhases& backward);

struct StageTimes {
  TimeParts forward;
  TimeParts backward_input;  // with recompute; op B is this, backward_weight and side_by_side
  TimeParts backward_weight;
  TimeParts side_by_side = {};  // negative: collectives of either half that a GEMM of the other hides in op B
  ExpertPhases forward_phases = {}, backward_phases = {};  // where passes are paired
};

// By stage; the optimizer step by pipeline rank.
struct OpTimes {
  std::vector<StageTimes> stages;
  std::vector<TimeParts> step;
};

}  // namespace rehearse
