#include "cost/lists.h"

#include <algorithm>

namespace rehearse {

namespace {

// Host seconds of one operation on a tensor, from traces of eager PyTorch (host_launch.json, tensors): a view
// taken in Python, a copy in a C++ loop (the reducer of DistributedDataParallel) and a copy from Python.
constexpr double kView = 3e-6, kCopy = 8.25e-6, kCopyInPython = 12e-6;

// A gather by DeepSpeed 0.3.16 over eight A100s took the host 130 us before the launch and 250 us for the
// launch (deepspeedai/DeepSpeed 1069). The launch of a collective alone takes 140.8 us
// (Profile::host_collective_s of A100s).
constexpr double kOfAnyRanks = 130e-6 + 250e-6 - 140.8e-6 - 8 * (kView + kCopy);

}  // namespace

double list_copies_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes) {
  constexpr double kReadAndWritten = 2;
  return std::max(ranks * profile.launch_s, kReadAndWritten * bytes / cluster.gpu.memory_bandwidth);
}

double list_host_s(const Profile& profile, int ranks) {
  return profile.host_collective_s + kOfAnyRanks + ranks * (kView + kCopy);
}

double list_wait_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes,
                   std::optional<double> beside_s) {
  const double copies_s = list_copies_s(profile, cluster, ranks, bytes);
  const double left_s = beside_s ? std::clamp(*beside_s + copies_s - ranks * kCopy, 0.0, copies_s) : 0;
  return list_host_s(profile, ranks) + bytes / cluster.gpu.memory_bandwidth + left_s;
}

double lists_apart_s(int ranks, int parameters) {
  constexpr double kOfOne = 3 * kView + kCopyInPython;  // narrow; view, narrow; copy_
  return static_cast<double>(ranks) * parameters * kOfOne;
}

}  // namespace rehearse
