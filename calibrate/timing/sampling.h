// How is a reliable time measured?
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

// Calls run(launches), which returns the seconds of that many launches in sequence. The first calls warm up
// and measure the duration of one launch. Then it repeats until `budget_s` has passed, at least five times
// (three when a single launch takes longer than the budget). Short launches are timed several at a time.
// `stopped` ends it early. Returns the seconds of one launch, by sample.
std::vector<double> sample(const std::function<double(int launches)>& run, double budget_s,
                           const std::function<bool()>& stopped);

// The same for launches concurrent with other work, which should last at least `factor` times as long as the
// isolated launches. run() is negative when the other work ended first; it is retried with twice the factor.
// Nothing when that fails every time.
std::vector<double> sample_beside(const std::function<double(int launches, double factor)>& run,
                                  double budget_s, const std::function<bool()>& stopped);

}  // namespace rehearse
