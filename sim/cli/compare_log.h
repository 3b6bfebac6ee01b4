// What does a report have to be compared with in the log of a real run?
#pragma once

#include <string>
#include <vector>

#include "cli/show_comparison.h"

namespace rehearse {

struct LogSide {
  ComparedRun run;
  std::vector<std::string> of_other_work;  // quantities that batch or GPUs keep from being compared
};

// The side of a log: medians after `warmup` logged steps (-1: a tenth of them, at least one where there are
// several), in the quantities of the report. Rates follow from the global batch and the GPUs that the log
// says; from the report's where it says none, as the length of a sequence does. What differs stands in the
// plan and the cluster of the run's report, and is said on standard error with what else must be known.
LogSide read_log_side(const std::string& file, int warmup, const Side& report);

}  // namespace rehearse
