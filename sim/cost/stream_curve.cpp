#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "cost/curves.h"
#include "cost/interpolate.h"
#include "cost/scan_time.h"
#include "cost/timed_on.h"

namespace rehearse {

namespace {

// A backward kernel streams like its forward, and all of the optimizer step like Adam.
std::vector<std::string> curves_for(Pointwise kind) {
  switch (stream_of(kind)) {
    case Pointwise::norm_backward:
      return {curve_name(kind), "norm", "copy"};
    case Pointwise::activation_backward:
      return {curve_name(kind), "activation", "copy"};
    case Pointwise::convolution_backward:
      return {curve_name(kind), "convolution", "copy"};
    case Pointwise::varying_activation:
      return {curve_name(kind), "activation", "copy"};
    case Pointwise::varying_activation_backward:
      return {curve_name(kind), "activation_backward", "activation", "copy"};
    case Pointwise::square_sum:
    case Pointwise::clip_scale:
      return {curve_name(kind), "adam", "copy"};
    case Pointwise::causal_softmax:
      return {curve_name(kind), "softmax", "copy"};
    case Pointwise::causal_softmax_backward:
      return {curve_name(kind), "softmax_backward", "softmax", "copy"};
    case Pointwise::scatter_add:
      return {curve_name(kind), "permute", "copy"};
    case Pointwise::quantize_blocks:
    case Pointwise::quantize_fp4:
      return {curve_name(kind), "quantise", "copy"};
    case Pointwise::quantize_fp4_at_random:
      return {curve_name(kind), "quantise_fp4", "quantise", "copy"};
    case Pointwise::rearrange:
    case Pointwise::eager:
      return {curve_name(kind), "add", "copy"};
    default:
      return {curve_name(kind), "copy"};
  }
}

const std::vector<StreamSample>& samples_of(const Profile& profile, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = profile.stream.find(name);
    if (found != profile.stream.end() && !found->second.empty()) return found->second;
  }
  throw MissingCalibration(
      fmt::format("profile {} has no stream \"{}\" nor \"{}\"", profile.name, names.front(), names.back()));
}

Estimate stream_time(const Profile& profile, const Gpu& gpu, const std::vector<std::string>& names,
                     double bytes) {
  if (bytes <= 0) return {profile.launch_s, false};
  Curve curve;
  for (const StreamSample& sample : samples_of(profile, names)) curve[sample.bytes] = sample.bytes_per_s;
  const double timed_s = std::max(profile.launch_s, bytes / read_at(curve, bytes).value);
  const double timed_bandwidth = timed_on(profile, gpu).memory_bandwidth;
  const RooflinePair bounds{bytes / timed_bandwidth, bytes / gpu.memory_bandwidth};
  const double seconds = timed_s * carried(profile.launch_s, bounds);
  // Above the largest sample a stream has settled at its asymptote; below the smallest the start dominates.
  const bool extrapolated = 2 * bytes < curve.begin()->first;
  return {std::max({profile.launch_s, seconds, bounds.here}), extrapolated};
}

}  // namespace

std::string curve_name(Pointwise kind) {
  return to_string(stream_of(kind));
}

std::string curve_name(const Scan& scan) {
  return scan.backward ? "scan_backward" : "scan";
}

Estimate pointwise_time(const Profile& profile, const Gpu& gpu, Pointwise kind, double bytes) {
  if (kind == Pointwise::rearrange && profile.measurement) return {};  // of kernels that do without
  return stream_time(profile, gpu, curves_for(kind), bytes);
}

Estimate scan_time(const Profile& profile, const Gpu& gpu, const Scan& scan, const ScanTensors& tensors) {
  if (profile.stream.contains(curve_name(scan)) || gpu.multiprocessors == 0)
    return stream_time(profile, gpu, {curve_name(scan), "copy"}, tensors.bytes);
  return {std::max(profile.launch_s, scan_seconds(gpu, scan, tensors.element_bytes, tensors.bytes)), true};
}

}  // namespace rehearse
