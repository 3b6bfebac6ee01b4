// Which share of days of training remains when GPUs fail, and how often should one save?
#pragma once

#include <cstdint>

namespace rehearse {

// Seconds. Failures come at random (exponential). Each costs the work since the last checkpoint, and then
// `restart_s`. Saving stops the training for `checkpoint_s`.
struct Failures {
  double mean_between_s = 0;  // of the whole job: that of one GPU over the number of GPUs
  double checkpoint_s = 0;
  double restart_s = 0;
};

// The interval between checkpoints, in seconds, that loses least time. Young 1974 (doi
// 10.1145/361147.361115): sqrt(2 C M). Daly 2006 (doi 10.1016/j.future.2004.11.016), equation 37: its next
// two orders; M where C >= 2 M.
double young_interval_s(const Failures& failures);
double daly_interval_s(const Failures& failures);

// Useful over passed time in the long run (Daly 2006, his cost function): T / (M e^(R/M) (e^((T+C)/M) - 1)).
double expected_goodput(const Failures& failures, double interval_s);

// The goodput of one random course of `days_s` seconds.
double simulated_goodput(const Failures& failures, double interval_s, double days_s, std::uint64_t seed);

// The interval with the best mean goodput over `courses` random courses. The scan runs in steps of 10 % from
// a quarter to four times Daly's interval. All intervals meet the same failures.
struct BestInterval {
  double interval_s = 0;
  double goodput = 0;
};
BestInterval best_simulated_interval(const Failures& failures, double days_s, std::uint64_t seed,
                                     int courses);

}  // namespace rehearse
