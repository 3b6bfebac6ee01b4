// How is a simulated or executed run shown? As a summary or JSON, a trace and a picture.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "cli/output.h"
#include "plan/work.h"
#include "result/report.h"
#include "result/timeline.h"
#include "schedule/schedule.h"

namespace rehearse {

struct ShowOptions {
  bool json = false;
  std::string trace, svg, png, html;
  Colour colour = Colour::automatic;
};
std::vector<VerbOption> show_options(ShowOptions& options);

// Before long work: checks that the files can be written, and that standard output gets only one of them.
void require_writable(const ShowOptions& options);

// Whether an output shows every op.
bool draws(const ShowOptions& options);

struct Shown {
  const Timeline& timeline;
  const Schedule& schedule;
  const Work& work;
  const Report& report;
  const std::vector<double>& step_times_s;
  Json scenario = nullptr;  // as read, for the page
  Json what_if = nullptr;   // what_if(), for the page; needed only where one is asked for
};

// Writes the requested files, then prints. `more` is merged into the JSON object; `last_line` ends the
// summary. std::runtime_error when a file or standard output cannot be written.
void show_run(const ShowOptions& options, const Shown& run, const Json& more = Json::object(),
              const std::string& last_line = "");

}  // namespace rehearse
