// How is one time taken that can be believed?
#pragma once

#include <functional>
#include <vector>

namespace rehearse {

struct Timing {
  double seconds = 0;  // median
  double spread = 0;   // distance of the quartiles over the median
  int samples = 0;
};

// Median and quartiles of the values, in any order; at least one.
Timing summarise(std::vector<double> values);

// Calls run(launches), which returns the seconds of so many launches one after the other: first to warm up
// and to learn how long one takes, then until `budget_s` has passed, at least five times (three when a
// single launch takes longer than the budget). Launches that are short are timed several at a time.
// `stopped` ends it early.
// The seconds of one launch, by sample.
std::vector<double> sample(const std::function<double(int launches)>& run, double budget_s,
                           const std::function<bool()>& stopped);

// The same of launches beside something that is to go on for at least `factor` times as long as they take
// alone: run() is negative when that ended first, and is tried again with twice the factor. Nothing when it
// does so every time.
std::vector<double> sample_beside(const std::function<double(int launches, double factor)>& run,
                                  double budget_s, const std::function<bool()>& stopped);

}  // namespace rehearse
