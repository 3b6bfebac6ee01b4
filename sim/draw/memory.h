// How does the memory of each pipeline rank change during an iteration? A picture: time from left to right,
// bytes upwards.
#pragma once

#include <string>

#include "result/report.h"

namespace rehearse {

// A self-contained SVG with the same bytes on every run. It has one line for each of at most eight pipeline
// ranks (the heaviest, the others evenly spread), with activations on top of the state. The heaviest rank's
// peak is marked; the GPU's memory is a dashed line. InputError when the timeline does not belong to the
// schedule.
std::string draw_memory(const Timeline& timeline, const Schedule& schedule, const Report& report,
                        const Work& work);

}  // namespace rehearse
