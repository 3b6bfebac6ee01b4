// Which samples does a profile have, which ones does a scenario need, and how far do two profiles agree?
#pragma once

#include <string>
#include <vector>

#include "calibrate/timing/jobs.h"
#include "cost/profile.h"

namespace rehearse {

// One table of a profile: "gemm fp32", "attention", "stream norm", "messages".
struct TableSummary {
  std::string name;
  std::size_t samples = 0;
  double best_rate = 0, median_rate = 0;  // FLOP/s, or bytes/s of a stream or message
  double widest_spread = 0;
  bool counts_flops = false;
};
std::vector<TableSummary> summarise(const Profile& profile);

// Keys and messages of the jobs without a sample in the profile, each once.
struct Missing {
  std::vector<SampleKey> kernels;
  std::vector<MessageJob> messages;
};
Missing missing_of(const Profile& profile, const Jobs& jobs);

// A sample that both profiles have: its time in the second over that in the first.
struct Agreement {
  std::string table, sample;
  double ratio = 1;
  double spread = 0;  // of both together
};
std::vector<Agreement> compare(const Profile& first, const Profile& second);

// Achieved rate against size, one panel for FLOPs and one for bytes, as SVG.
std::string draw_rates(const Profile& profile);

}  // namespace rehearse
