// `--schedule auto`: which schedule is best for this plan's own times within its memory, and how far from the
// optimum could it be?
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/iteration.h"

namespace rehearse {

struct ScheduleSearch {
  double memory_bytes = 0;  // limit of each GPU's needs; 0: all but the experiment's headroom
  double seconds = 10;      // of one core, as counted work (order/find_orders.h)
  std::uint64_t seed = 1;
  bool chooses_layers = false;  // also chooses chunks, their placement, and the layers of each stage
  std::function<bool()> is_stopped = [] { return false; };
  // Runs each experiment by its engine. SimGrid runs once a process, so the caller starts the processes.
  std::function<std::vector<double>(const std::vector<Experiment>&)> step_times;
};

// The option for which the bound proves nothing about the step, or "" for none. The search times only passes,
// and assumes that ranks begin together.
std::string unproven_option(const Plan& plan);

// The best named schedule that fits, with the layers that suit it best.
struct BestNamed {
  Plan plan;
  Schedule order;
  double step_time_s = 0;
};

struct FoundSchedule {
  Plan plan;  // the experiment's, with chunks, placement and layers of the result
  Schedule order;
  double step_time_s = 0;              // by the experiment's engine
  std::optional<double> least_time_s;  // no order of these stages within the memory takes less
  double memory_bytes = 0;
  bool fits = true;  // in the memory; else `order` needs the least, and the times are not known
  std::optional<BestNamed> named;

  // How far the step is above the bound, as a share of it.
  std::optional<double> gap() const {
    return least_time_s ? std::optional(step_time_s / *least_time_s - 1) : std::nullopt;
  }
};

// Requires a legal plan of at least two pipeline ranks, with stages on nodes of one kind. By the experiment's
// engine, the result is no slower than any named schedule with the same placement that fits.
FoundSchedule find_schedule(const Experiment& experiment, const ScheduleSearch& search);

// "interleaved-1f1b, microbatches in groups of 16"
std::string name_in_words(const Plan& plan);

}  // namespace rehearse
