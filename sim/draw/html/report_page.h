// How is one run shown as a page that opens anywhere, without a network?
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "result/report.h"

namespace rehearse::html {

// Origin of the run.
struct RunOrigin {
  std::string version;                        // of the program
  std::string command;                        // as typed; "": unknown
  nlohmann::ordered_json versions = nullptr;  // of other software: {"SimGrid": "3.32.0"}
  nlohmann::ordered_json scenario = nullptr;  // as read, with flags applied
  nlohmann::ordered_json what_if = nullptr;   // [{label, axis, current, values: [{value, fits, ...}]}]
};

// Figures, a zoomable pipeline, memory over time, communication, what-if curves, inputs. InputError when the
// timeline does not belong to the schedule.
std::string write_report_page(const Timeline& timeline, const Schedule& schedule, const Work& work,
                              const Report& report, const RunOrigin& origin);

// The parts of the page that depend on the run: {report, timeline, memory}.
nlohmann::ordered_json run_json(const Timeline& timeline, const Schedule& schedule, const Work& work,
                                const Report& report, const std::string& version);

}  // namespace rehearse::html
