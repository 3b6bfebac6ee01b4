// What does a row of a sweep come to when it is also executed?
#pragma once

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

// A row that is done, with `executed_step_time_s`, `executed_bubble_fraction` and the errors of the
// prediction in its report: the scenario is executed by this program in a process of its own, whose failure
// is the row's. Other rows are returned as they are.
Row with_executed(Row row, const ScenarioSource& source, const ExecuteRows& options);

}  // namespace rehearse
