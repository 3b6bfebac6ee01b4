// On which GPU were the kernels of a profile timed, and how does another GPU change their times?
//
// A time is multiplied by the ratio of the rooflines of the two GPUs at the kernel's shape (Williams,
// Waterman, Patterson 2009). Launches cost the same on both. Tiles and waves stay those of the timed GPU:
// peaks and memory bandwidth decide how fast a GPU is, its number of multiprocessors does not.
#pragma once

#include <string>
#include <vector>

#include "cost/profile.h"

namespace rehearse {

// The profile's GPU. A figure that the profile does not state is that of `here`, the cluster's GPU.
Gpu timed_on(const Profile& profile, const Gpu& here);

// FLOP/s of a precision; fp16 and bf16, which tensor cores run at one rate, stand in for each other. 0: no
// peak on record.
double peak_of(const Gpu& gpu, const std::string& precision);

// The two rooflines at one shape: least seconds on the GPU that was timed and on the cluster's.
struct RooflinePair {
  double timed = 0;
  double here = 0;
};

// The factor on a time that contains the start of a kernel, from the timed GPU to the cluster's. Exactly 1
// where the bounds are equal.
double carried(double launch_s, const RooflinePair& bounds);

// A figure that differs between the two GPUs.
struct Difference {
  std::string precision;  // of a peak; empty: the memory bandwidth
  double timed = 0;
  double here = 0;
};

// Differences of peaks and memory bandwidth. Empty: the times are those of the cluster's GPU.
std::vector<Difference> differences(const Profile& profile, const Gpu& here);
std::string to_string(const Difference& difference);  // "bf16 peak 989 -> 4000 TFLOPS"

}  // namespace rehearse
