// Which single checks make up check_schedule? Each appends a sentence for every fault that it finds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

using Faults = std::vector<std::string>;

// Position of an op in its rank's list, by kind, stage and microbatch. Requires check_shape to find nothing.
class OpIndex {
 public:
  explicit OpIndex(const Schedule& schedule);

  // Index of the (last part of the) op in the list of `rank`; -1 when that list has none.
  std::int32_t find(int rank, OpKind kind, int stage, int microbatch) const;

 private:
  struct Place {
    int rank = -1;
    std::int32_t index = -1;
  };
  std::size_t cell(OpKind kind, int stage, int microbatch) const;

  int stages_;
  int microbatches_;
  std::vector<Place> places_;
};

// The schedule has the plan's size, and every op is within it.
void check_shape(const Schedule& schedule, const Plan& plan, Faults& faults);

// Each stage has each microbatch's F once, then B or I and W once, all on one rank. Where gradients are
// reduced, those of each stage are reduced once.
void check_counts(const Schedule& schedule, Faults& faults);

// Sends and receives between two ranks pair up, in the same order on both sides of a stream.
void check_messages(const Schedule& schedule, Faults& faults);

// The inputs of an op are complete when it begins, by its waits and by the order of its stream.
void check_waits(const Schedule& schedule, Faults& faults);

// No ops wait for each other in a circle. Requires the other checks to find nothing.
void check_deadlock(const Schedule& schedule, const Plan& plan, Faults& faults);

}  // namespace rehearse
