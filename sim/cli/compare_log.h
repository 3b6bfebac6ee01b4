// Which quantities of a real run's log can be compared with a report?
#pragma once

#include <string>
#include <vector>

#include "cli/show_comparison.h"

namespace rehearse {

struct LogSide {
  ComparedRun run;
  std::vector<std::string> of_other_work;  // not comparable, as batch or GPUs differ
};

// The side of a log: medians after `warmup` logged steps (-1: a tenth of them, at least one where there are
// several), as quantities of the report. Rates use the global batch and the GPUs of the log, or the report's
// where the log has none; the sequence length is the report's. Differences are in the plan and the cluster of
// the run's report, and are printed on standard error with further notes.
LogSide read_log_side(const std::string& file, int warmup, const Side& report);

}  // namespace rehearse
