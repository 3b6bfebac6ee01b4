// What does a report have to be compared with in the log of a real run?
#pragma once

#include <string>

#include "cli/show_comparison.h"

namespace rehearse {

// The side of a log: medians after `warmup` logged steps (-1: a tenth of them, at least one where there are
// several), in the quantities of the report whose batch, sequence and GPUs turn rates into times. What
// differs or must be known is said on standard error.
ComparedRun read_log_side(const std::string& file, int warmup, const Side& report);

}  // namespace rehearse
