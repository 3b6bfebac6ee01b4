// Messages are timed in rounds through all of them, and the longest GEMM of the jobs beside them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/timing/jobs.h"
#include "calibrate/timing/ranks.h"

namespace rehearse {

struct MessageRequest {
  const Ranks& ranks;
  const Jobs& jobs;  // messages and, for what is timed beside them, kernels
  int rounds = 1;
  double budget_s = 0.1;   // for one message in one round
  double timeout_s = 120;  // for one timing in one round: a rank that keeps the others waiting ends them all
  double least_bytes = 0;  // of the operands that a GEMM beside messages rotates through
  std::function<bool()> stopped = {};
  // Rank 0 alone is asked and told: whether there is a time already, and before each timing of how many.
  std::function<bool(const MessageJob&)> known = {};
  std::function<bool(const MessageJob&)> known_beside = {};  // of a GEMM beside messages of this kind
  // Of a GEMM on all ranks at once; none: not wanted. Every rank must have a GPU of its own.
  std::function<bool()> known_together = {};
  double together_s = 2;  // for which it runs: longer than limits on power take to act
  std::function<void(const std::string& what, std::size_t all)> before = {};
};

struct TimedMessages {
  struct Timed {
    MessageJob job;
    std::vector<double> seconds;  // by sample, of all rounds; none: known already
  };
  std::vector<Timed> messages;
  std::vector<BesideSample> beside;
  std::optional<TogetherSample> together;
  std::vector<std::string> notes;  // what could not be timed, and why
  bool complete = true;
};

// On every process that takes part, with the same jobs; the result is the same on each. DeviceError when a
// rank fails or goes.
TimedMessages time_messages(const MessageRequest& request);

}  // namespace rehearse
