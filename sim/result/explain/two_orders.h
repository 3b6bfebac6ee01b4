// In what does one order of passes differ from another of the same plan? In words, and drawn on one time
// axis.
#pragma once

#include <string>

#include "result/timeline.h"
#include "schedule/schedule.h"

namespace rehearse {

struct RunOrder {
  std::string name;
  const Schedule& schedule;
  const Timeline& timeline;  // its ranks are pipeline ranks, from the first
};

// Backwards that are split, forwards before the first backward, microbatches that follow each other through a
// chunk, and idle compute, by rank where ranks differ; then both pictures, one letter for the pass that fills
// most of its slot. At most `columns` slots.
std::string two_orders(const RunOrder& ours, const RunOrder& other, int columns = 88);

}  // namespace rehearse
