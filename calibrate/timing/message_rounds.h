// Messages are timed in rounds over all of them, and concurrently with the longest GEMM of the jobs.
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
  const Jobs& jobs;  // messages and, for concurrent timings, kernels
  int rounds = 1;
  double budget_s = 0.1;   // for one message in one round
  double timeout_s = 120;  // for one timing in one round: a rank that keeps the others waiting ends them all
  double least_bytes = 0;  // least memory of the operands of a GEMM concurrent with messages
  std::function<bool()> stopped = {};
  // Called on rank 0 only: whether a time exists already, and before each timing its name and the total.
  std::function<bool(const MessageJob&)> known = {};
  std::function<bool(const MessageJob&)> known_beside = {};  // for a GEMM concurrent with such messages
  // For a GEMM on all ranks at once; none: not wanted. Every rank must have a GPU of its own.
  std::function<bool()> known_together = {};
  double together_s = 2;  // its duration: longer than power limits take to act
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
  std::vector<std::string> notes;  // timings that failed, and why
  bool complete = true;
};

// Called on every participating process, with the same jobs; the result is the same on each. DeviceError when
// a rank fails or goes.
TimedMessages time_messages(const MessageRequest& request);

}  // namespace rehearse
