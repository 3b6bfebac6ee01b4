#include <fmt/format.h>

#include "base/error.h"
#include "cost/curves.h"
#include "cost/interpolate.h"

namespace rehearse {

namespace {

// The measured curve that stands for a kernel; a backward kernel streams like its forward. What has no
// curve of its own is taken to stream like a plain copy.
std::string curve_name(Pointwise kind) {
  switch (kind) {
    case Pointwise::norm:
    case Pointwise::norm_backward:
      return "norm";
    case Pointwise::rotary:
      return "rotary";
    case Pointwise::activation:
    case Pointwise::activation_backward:
      return "activation";
    case Pointwise::add:
      return "add";
    default:
      return "copy";
  }
}

const std::vector<StreamSample>& samples_of(const Profile& profile, Pointwise kind) {
  auto found = profile.stream.find(curve_name(kind));
  if (found == profile.stream.end()) found = profile.stream.find("copy");
  if (found == profile.stream.end() || found->second.empty()) {
    throw MissingCalibration(
        fmt::format("profile {} has no stream \"{}\" nor \"copy\"", profile.name, curve_name(kind)));
  }
  return found->second;
}

}  // namespace

Estimate pointwise_time(const Profile& profile, const Gpu& gpu, Pointwise kind, double bytes) {
  if (bytes <= 0) return {profile.launch_s, false};
  Curve curve;
  for (const StreamSample& sample : samples_of(profile, kind)) curve[sample.bytes] = sample.bytes_per_s;
  const double rate = std::min(read_at(curve, bytes).value, gpu.memory_bandwidth);
  // Above the largest sample a stream has settled at its asymptote; below the smallest the start dominates.
  const bool extrapolated = 2 * bytes < curve.begin()->first;
  return {std::max(profile.launch_s, bytes / rate), extrapolated};
}

}  // namespace rehearse
