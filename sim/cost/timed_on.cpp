#include "cost/timed_on.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

// Tolerance between two figures in different units, which may differ by rounding.
constexpr double kRounding = 1e-9;

bool is_equal(double a, double b) {
  return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

double stated_peak(const Gpu& gpu, const std::string& precision) {
  const auto found = gpu.peak_flops.find(precision);
  return found == gpu.peak_flops.end() ? 0 : found->second;
}

}  // namespace

double peak_of(const Gpu& gpu, const std::string& precision) {
  if (const double stated = stated_peak(gpu, precision); stated > 0) return stated;
  if (precision != "fp16" && precision != "bf16") return 0;
  return stated_peak(gpu, precision == "fp16" ? "bf16" : "fp16");
}

Gpu timed_on(const Profile& profile, const Gpu& here) {
  Gpu gpu = here;
  const Gpu& timed = profile.gpu;
  if (!timed.name.empty()) gpu.name = timed.name;
  if (timed.memory_bandwidth > 0 && !is_equal(timed.memory_bandwidth, here.memory_bandwidth))
    gpu.memory_bandwidth = timed.memory_bandwidth;
  if (timed.multiprocessors > 0) gpu.multiprocessors = timed.multiprocessors;
  for (auto& [precision, peak] : gpu.peak_flops) {
    const double own = peak_of(timed, precision);
    if (own > 0 && !is_equal(own, peak)) peak = own;
  }
  for (const auto& [precision, peak] : timed.peak_flops) gpu.peak_flops.emplace(precision, peak);
  return gpu;
}

double carried(double launch_s, const RooflinePair& bounds) {
  const double timed = launch_s + bounds.timed;
  return timed > 0 ? (launch_s + bounds.here) / timed : 1;
}

std::vector<Difference> differences(const Profile& profile, const Gpu& here) {
  const Gpu timed = timed_on(profile, here);
  std::vector<Difference> found;
  for (const auto& [precision, peak] : here.peak_flops)
    if (const double own = timed.peak_flops.at(precision); own != peak)
      found.push_back({precision, own, peak});
  if (timed.memory_bandwidth != here.memory_bandwidth)
    found.push_back({"", timed.memory_bandwidth, here.memory_bandwidth});
  return found;
}

std::string to_string(const Difference& difference) {
  const bool is_peak = !difference.precision.empty();
  return fmt::format("{} {:.4g} -> {:.4g} {}", is_peak ? difference.precision + " peak" : "memory bandwidth",
                     difference.timed / 1e12, difference.here / 1e12, is_peak ? "TFLOPS" : "TB/s");
}

}  // namespace rehearse
