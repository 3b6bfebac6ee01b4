// `--schedule auto`: which schedule is best for this plan's own times under its memory, and how far from the
// best that could be?
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "run/iteration.h"

namespace rehearse {

struct ScheduleSearch {
  double memory_bytes = 0;  // of each GPU that may be needed; 0: all but the experiment's headroom
  double seconds = 10;      // of one core, as counted work (order/find_orders.h)
  std::uint64_t seed = 1;
  bool chooses_layers = false;  // chunks of a rank, their placement, and the layers of each stage too
  std::function<bool()> is_stopped = [] { return false; };
};

// The best named schedule that fits, on the layers that are best for it.
struct BestNamed {
  Plan plan;
  Schedule order;
  double step_time_s = 0;
};

struct FoundSchedule {
  Plan plan;  // the experiment's with chunks, placement and layers of what was found
  Schedule order;
  double step_time_s = 0;   // by the experiment's engine
  double least_time_s = 0;  // no order of these stages within the memory takes less
  double memory_bytes = 0;
  bool fits = true;  // in the memory; else `order` is the one that needs least
  std::optional<BestNamed> named;

  double gap() const { return least_time_s > 0 ? step_time_s / least_time_s - 1 : 0; }
};

// Requires a legal plan of at least two pipeline ranks, stages on nodes of one kind. What is found is no
// slower by the experiment's engine than any named schedule that lays the stages so and fits.
FoundSchedule find_schedule(const Experiment& experiment, const ScheduleSearch& search);

// "interleaved-1f1b, microbatches in groups of 16"
std::string name_in_words(const Plan& plan);

}  // namespace rehearse
