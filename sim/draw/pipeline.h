// What does the pipeline do at each time? A picture: one row a pipeline rank, time from left to right.
#pragma once

#include <string>
#include <vector>

#include "result/report.h"

namespace rehearse {

// A self-contained SVG with the same bytes on every run. Of ranks with the same op list, the first is drawn.
// Of more than 64 pipeline ranks, the first and the last 32 are drawn; of a long iteration, its first and its
// last part. The picture states such omissions. Below 2 MB at any size. InputError when the timeline does not
// belong to the schedule.
std::string draw_pipeline(const Timeline& timeline, const Schedule& schedule, const Report& report);

// Several runs, one above the other on the same time scale, with one axis and one legend below.
struct DrawnRun {
  std::string name;  // "predicted", or a schedule's name
  const Timeline& timeline;
  const Schedule& schedule;
  const Report& report;
};
std::string draw_pipelines(const std::vector<DrawnRun>& runs);

}  // namespace rehearse
