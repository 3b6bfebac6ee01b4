// How does the memory of each pipeline rank rise and fall over an iteration? A picture: time from left to
// right, bytes upwards.
#pragma once

#include <string>

#include "result/report.h"

namespace rehearse {

// A self-contained SVG that is the same on every run: one line for each of at most eight pipeline ranks (the
// heaviest among them, the others evenly spread), from the floor of its state up to its activations; the
// heaviest rank's peak marked, the GPU's memory as a dashed line. InputError when the timeline does not
// belong to the schedule.
std::string draw_memory(const Timeline& timeline, const Schedule& schedule, const Report& report,
                        const Work& work);

}  // namespace rehearse
