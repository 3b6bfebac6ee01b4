#include "search/bounds.h"

#include <algorithm>
#include <vector>

#include "plan/schedules.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

// Seconds of the ops of one microbatch on a stage.
struct MicrobatchTimes {
  double forward = 0;
  double input = 0;   // until the gradient is sent on: I, or B where it is one op
  double weight = 0;  // the remaining backward after that
};

// Sums in another order than the engine's differ by less than this.
constexpr double kRounding = 1e-9;

// Where passes are paired, all expert all-to-alls may be hidden.
double exchanges_s(const ExpertPhases& phases) {
  return phases.dispatch + phases.combine;
}

MicrobatchTimes times_of(const StageTimes& stage, bool split) {
  const double side_by_side = std::min(0.0, stage.side_by_side.total()) - exchanges_s(stage.backward_phases);
  const double input = stage.backward_input.total(), weight = stage.backward_weight.total();
  const double forward = stage.forward.total() - exchanges_s(stage.forward_phases);
  if (split)
    return {forward, input + std::min(0.0, weight + side_by_side), std::max(0.0, weight + side_by_side)};
  return {forward, input + weight + side_by_side, 0};
}

}  // namespace

double least_step_time(const Plan& plan, const OpTimes& times) {
  const bool split = traits(plan.schedule).splits_backward;
  const auto microbatches = static_cast<double>(plan.microbatches());
  std::vector<MicrobatchTimes> stages;
  std::vector<MicrobatchTimes> ranks(static_cast<std::size_t>(plan.pp));
  for (std::size_t s = 0; s < times.stages.size(); ++s) {
    stages.push_back(times_of(times.stages[s], split));
    MicrobatchTimes& rank = ranks[static_cast<std::size_t>(pipeline_rank_of(static_cast<int>(s), plan))];
    rank.forward += stages.back().forward;
    rank.input += stages.back().input;
    rank.weight += stages.back().weight;
  }
  double least = 0, fill = 0, back = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {  // stage r is the first of rank r
    const double handed_on = fill + microbatches * (ranks[r].forward + ranks[r].input);
    const double busy = handed_on + microbatches * ranks[r].weight + times.step[r].total();
    const double drain = handed_on + back + stages.front().weight + times.step.front().total();
    least = std::max({least, busy, drain});
    fill += stages[r].forward;
    back += stages[r].input;
  }
  return least * (1 - kRounding);
}

}  // namespace rehearse
