#include "plan/stage_times.h"

namespace rehearse {

TimeParts& TimeParts::operator+=(const TimeParts& other) {
  compute += other.compute;
  recompute += other.recompute;
  optimizer += other.optimizer;
  tp += other.tp;
  cp += other.cp;
  ep += other.ep;
  return *this;
}

TimeParts TimeParts::operator*(double factor) const {
  return {compute * factor, recompute * factor, optimizer * factor, tp * factor, cp * factor, ep * factor};
}

}  // namespace rehearse
