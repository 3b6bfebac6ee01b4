// Which results does a person at a terminal want to read?
#pragma once

#include <string>

#include "result/report.h"

namespace rehearse {

// Two lines: parallelism and schedule; microbatches, precision and recompute.
std::string plan_lines(const Report& report);

// "288 of 1000000 microbatches; each round of 8 more adds 275.6 ms"
std::string in_words(const Extrapolation& of, const Plan& plan);

// About 25 lines, at most 88 columns wide unless a name or a warning is longer. `colour`: with ANSI escapes.
// Without them the text is plain ASCII except for names.
std::string write_summary(const Report& report, bool colour);

}  // namespace rehearse
