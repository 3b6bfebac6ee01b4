// How does one order of passes differ from another of the same plan? In words, and drawn on one time axis.
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

// Lists split backwards, forwards before the first backward, consecutive microbatches through a chunk, and
// idle compute, by rank where ranks differ. Then draws both orders, with one letter for the pass that takes
// most of its slot. At most `columns` slots.
std::string two_orders(const RunOrder& ours, const RunOrder& other, int columns = 88);

}  // namespace rehearse
