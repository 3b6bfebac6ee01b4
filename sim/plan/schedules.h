// Which properties does each pipeline schedule have, in words and in shape? Its order of ops is in
// sim/schedule.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "plan/options.h"

namespace rehearse {

struct Plan;

struct ScheduleTraits {
  ScheduleName schedule;
  const char* name;                                  // "interleaved-1f1b"
  std::array<std::string_view, 2> other_names = {};  // in lower case; "": none
  const char* about;                                 // one line
  const char* source;                                // the paper
  const char* needs = "nothing";                     // of the plan, besides its chunks
  bool is_v_shaped = false;                          // two chunks a rank: stage s and stage 2 pp - 1 - s
  bool takes_chunks = false;                         // any number of chunks a rank
  bool splits_backward = false;                      // I and W in place of B
  bool overlaps_p2p = true;  // by default: only Megatron-LM's 1F1B sends while it waits
  bool is_sought = false;    // its order is searched for within a memory limit
  int min_microbatches = 0;  // for each pipeline rank
  // Idle time over whole time when stages are equal, F = I = W, and messages are free.
  double (*ideal_bubble)(const Plan& plan);

  // Other names for it, in lower case.
  std::span<const std::string_view> aliases() const {
    return {other_names.begin(), std::ranges::find(other_names, "")};
  }
};

const ScheduleTraits& traits(ScheduleName schedule);

// By its name or an alias, in any case; nullptr for another word.
const ScheduleTraits* schedule_named(std::string_view word);

}  // namespace rehearse
