// Over which ranks does a test divide a small network?
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>

#include "cases.h"

namespace rehearse {

struct Split {
  ScheduleName schedule = ScheduleName::one_f_one_b;
  int tp = 1, cp = 1, pp = 1, dp = 1, ep = 1, etp = 1, zero = 0;
};

// "1f1b_tp2_dp4_zero1": all values other than 1, or 0.
inline std::string name_of(const Split& split) {
  std::string name = to_string(split.schedule);
  for (const auto& [axis, degree] : {std::pair{"tp", split.tp},
                                     {"cp", split.cp},
                                     {"pp", split.pp},
                                     {"dp", split.dp},
                                     {"ep", split.ep},
                                     {"etp", split.etp}})
    if (degree > 1) name += "_" + std::string(axis) + std::to_string(degree);
  if (split.zero > 0) name += "_zero" + std::to_string(split.zero);
  std::ranges::replace(name, '-', '_');
  return name;
}

// With sequence parallelism where there are tensor-parallel ranks.
inline Plan plan_across(const Split& split) {
  Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
  plan.cp = split.cp;
  plan.ep = split.ep;
  plan.etp = split.etp;
  plan.zero = split.zero;
  plan.sequence_parallel = split.tp > 1;
  return plan;
}

inline void PrintTo(const Split& split, std::ostream* out) {
  *out << name_of(split);
}

}  // namespace rehearse
