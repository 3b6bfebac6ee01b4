#include "cost/stage_times.h"

#include <algorithm>

namespace rehearse {

TimeParts& TimeParts::operator+=(const TimeParts& other) {
  compute += other.compute;
  recompute += other.recompute;
  optimizer += other.optimizer;
  tp += other.tp;
  cp += other.cp;
  ep += other.ep;
  waits += other.waits;
  return *this;
}

ExpertPhases& ExpertPhases::operator+=(const ExpertPhases& other) {
  layers += other.layers;
  attention += other.attention;
  experts += other.experts;
  dispatch += other.dispatch;
  combine += other.combine;
  taken = std::max(taken, other.taken);
  return *this;
}

HiddenExchanges hidden_exchanges(const ExpertPhases& forward, const ExpertPhases& backward) {
  const double layers = std::min(forward.layers, backward.layers);
  if (!(layers > 0)) return {};
  const double f = layers / forward.layers, b = layers / backward.layers;
  const auto hidden = [](double exchange_s, double kernels_s, double taken) {
    return std::min(exchange_s * (1 - taken), kernels_s);
  };
  return {hidden(f * forward.dispatch, b * backward.experts, forward.taken) +
              hidden(f * forward.combine, b * backward.attention, forward.taken),
          hidden(b * backward.combine, f * forward.attention, backward.taken) +
              hidden(b * backward.dispatch, f * forward.experts, backward.taken)};
}

TimeParts TimeParts::operator*(double factor) const {
  return {compute * factor, recompute * factor, optimizer * factor, tp * factor,
          cp * factor,      ep * factor,        waits * factor};
}

}  // namespace rehearse
