#include "draw/pipeline.h"
#include "fuzz/target.h"
#include "result/compare/compare.h"
#include "result/compare/join_traces.h"
#include "result/compare/read_trace.h"

namespace rehearse::fuzz {

namespace {

void compare(const ComparedRun& run) {
  const ReportComparison comparison = compare_runs(run, run);
  comparison_table(comparison);
  comparison_json(comparison).dump();
}

// Like `compare` with a report or a trace, here with itself.
const Target kReport("report", [](const std::string& input) {
  const std::string file = file_of(input);
  const Json json = read_json_file(file, kTraceLimits);
  if (!is_trace(json)) return compare(compared_run(file, json));
  const RecordedRun run = read_trace(json, file);
  compare(compared_run(file, run.report, &run.timeline, &run.schedule));
  const Report head = read_report_head(JsonReader(run.report, file));
  draw_pipelines({{file, run.timeline, run.schedule, head}, {file, run.timeline, run.schedule, head}});
  join_traces(json, "a", json, "b").dump();
});

}  // namespace

}  // namespace rehearse::fuzz
