// Which groups can the available ranks form, and which messages are timed in each?
#pragma once

#include <vector>

#include "calibrate/timing/jobs.h"

namespace rehearse {

// Messages of MessageJob::members ranks, spread evenly over MessageJob::nodes machines.
struct PlacedMessage {
  MessageJob job;
  std::vector<int> members;  // ranks of the world
};

// `machines`: machine of each rank. Every operation of `wanted` is placed at every wanted size, in these
// groups:
// - 1, 2, 4, ... and all ranks of each of 1, 2, 4, ... and all machines;
// - as many ranks as `wanted` names, where machines have so many.
// Point-to-point messages go within a machine and between two. Sorted by job.
std::vector<PlacedMessage> place_messages(const std::vector<MessageJob>& wanted,
                                          const std::vector<int>& machines);

// Unchanged, in groups of the first ranks; without those that need more ranks.
std::vector<PlacedMessage> among_first(const std::vector<MessageJob>& wanted, int ranks);

// Every operation from 1 KiB to `largest` bytes, at each fourth power of two, for place_messages().
std::vector<MessageJob> message_sweep(double largest);

}  // namespace rehearse
