// The single checks behind check_schedule: each appends a sentence for every fault that it finds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

using Faults = std::vector<std::string>;

// By kind, stage and microbatch: where in its rank's list an op stands. Requires check_shape to find nothing.
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

// The schedule has the plan's size, and every op lies within it.
void check_shape(const Schedule& schedule, const Plan& plan, Faults& faults);

// Each stage has each microbatch's F once and B, or I and W, once, in this order and on one rank; where
// gradients are reduced, each stage's are, once.
void check_counts(const Schedule& schedule, Faults& faults);

// Sends and receives between two ranks pair up, in the same order on both sides of a stream.
void check_messages(const Schedule& schedule, Faults& faults);

// What an op reads has arrived when it begins: by its waits and by the order of its stream.
void check_waits(const Schedule& schedule, Faults& faults);

// No circle of ops that wait for each other. Requires the other checks to find nothing.
void check_deadlock(const Schedule& schedule, const Plan& plan, Faults& faults);

}  // namespace rehearse
