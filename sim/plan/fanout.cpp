#include "plan/fanout.h"

#include <algorithm>

namespace rehearse {

double copies(const Fanout& fanout, double places) {
  if (fanout.chosen == 0) return places;
  const auto experts = static_cast<double>(fanout.experts);
  const double elsewhere = experts - experts / places;
  double none_chosen = 1;
  for (std::int64_t i = 0; i < fanout.chosen; ++i)
    none_chosen *= std::max(0.0, elsewhere - static_cast<double>(i)) / (experts - static_cast<double>(i));
  return places * (1 - none_chosen);
}

}  // namespace rehearse
