// The measurement itself: every job once, into a profile that can be saved after each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/timing/kernel_timer.h"
#include "calibrate/timing/ranks.h"
#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

struct CalibrationRequest {
  Cluster cluster;  // names the kind of GPU and of links, and states the peaks
  Jobs jobs;
  Cache cache = Cache::cold;
  const Ranks* ranks = nullptr;   // of messages; null: threads on cores, as many as the largest group has
  double timeout_s = 120;         // for one message, before the ranks are given up
  double budget_s = 0.3;          // for one kernel or message, in several rounds through all of them
  std::function<bool()> stopped;  // ends after the current job; finished timings are kept
  // Called before each timing: the job, the number done, the total, and the seconds that the rest will take.
  std::function<void(const std::string& job, std::size_t done, std::size_t all, double left_s)> progress;
  std::function<void(const Profile&)> save;  // at the end, unless a rate was above the peak
};

struct Calibration {
  Profile profile;
  std::size_t measured = 0, known = 0;  // kernels and messages; known: in the profile that was continued
  bool complete = true;
  std::vector<std::string> notes;       // wide spreads, changed clocks, failed timings
  std::vector<std::string> above_peak;  // impossible rates
};

// `profile`: samples that need not be taken again; its name and sources are kept. Where `ranks` are
// processes, all of them call it. Messages are timed first. Then the first rank alone times kernels, and has
// the result.
Calibration calibrate(kernels::Device& device, const CalibrationRequest& request, Profile profile);

}  // namespace rehearse
