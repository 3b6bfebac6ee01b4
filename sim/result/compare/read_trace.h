// Which run does a trace show? The inverse of write_chrome_trace().
#pragma once

#include <string>

#include "base/json_reader.h"
#include "result/report.h"
#include "result/timeline.h"

namespace rehearse {

struct RecordedRun {
  Timeline timeline;  // to the nanosecond
  Schedule schedule;  // ops in issue order, without their waits
  Json report;        // rehearse.report/1
};

// Whether the JSON is a Chrome trace, by any program.
bool is_trace(const Json& json);

// InputError, naming file and event, unless the trace is one that write_chrome_trace() wrote.
RecordedRun read_trace(const Json& trace, const std::string& file);

// The fields of a rehearse.report/1 that pictures and titles show: names, degrees, schedule, rates, bubble.
Report read_report_head(const JsonReader& report);

}  // namespace rehearse
