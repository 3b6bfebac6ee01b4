// How is a row of a sweep also executed?
#pragma once

#include "cli/verb.h"
#include "scenario/flags.h"
#include "sweep/row.h"

namespace rehearse {

struct ExecuteRows {
  std::string device;  // "": rows are not executed
  int iterations = 5;
  int warmup = 2;
  bool wanted() const { return !device.empty(); }
};
std::vector<VerbOption> execute_row_options(ExecuteRows& options);

// Adds `executed_step_time_s`, `executed_bubble_fraction` and the prediction's errors to the report of a
// finished row. The scenario is executed by this program in a process of its own; its failure becomes the
// row's. Other rows are returned unchanged.
Row with_executed(Row row, const ScenarioSource& source, const ExecuteRows& options);

}  // namespace rehearse
