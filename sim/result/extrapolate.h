// What is the report of a long step, of which three shorter ones were simulated?
//
// A pipeline repeats itself once it is full: each further round of microbatches adds the same seconds, the
// same calls and the same bytes. The three steps are one and the same round apart. Each figure of the long
// step follows from the last two; the first tells whether the figures lie on a line.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "result/report.h"

namespace rehearse {

struct Extrapolated {
  Report report;
  std::string off_line;  // a time that lies on no line, which makes all times doubtful; "": none
};

// The report of `plan`, which has `rounds` rounds more than the last of the reports. None where memory or
// traffic lies on no line.
std::optional<Extrapolated> extrapolate(const std::array<Report, 3>& shorter, const Plan& plan,
                                        std::int64_t rounds);

}  // namespace rehearse
