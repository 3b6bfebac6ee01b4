// Which groups can be formed of the ranks at hand, and which messages are timed in each?
#pragma once

#include <vector>

#include "calibrate/timing/jobs.h"

namespace rehearse {

// Messages of MessageJob::members ranks, spread evenly over MessageJob::nodes machines.
struct PlacedMessage {
  MessageJob job;
  std::vector<int> members;  // ranks of the world
};

// `machines`: of each rank. Every operation of `wanted` at every size it is wanted at, in groups of 1, 2, 4,
// ... and all ranks of 1, 2, 4, ... and all machines, and in groups of as many ranks as `wanted` names, as
// far as machines hold so many; messages from one rank to another within a machine and between two. Sorted
// by job.
std::vector<PlacedMessage> place_messages(const std::vector<MessageJob>& wanted,
                                          const std::vector<int>& machines);

// As they stand, in groups of the first ranks; without those that need more than there are.
std::vector<PlacedMessage> among_first(const std::vector<MessageJob>& wanted, int ranks);

// Every operation from 1 KiB to `largest` bytes, at each fourth power of two, for place_messages().
std::vector<MessageJob> message_sweep(double largest);

}  // namespace rehearse
