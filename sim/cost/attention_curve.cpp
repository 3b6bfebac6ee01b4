#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "cost/curves.h"
#include "cost/interpolate.h"

namespace rehearse {

namespace {

// FLOPs of the kernel that the samples timed: the forward multiplies twice, the backward five times (Dao
// 2023, FlashAttention-2, section 4.1), and a causal mask skips half.
double counted_flops(const Attention& attention) {
  const double forward = 4.0 * static_cast<double>(attention.batch) * static_cast<double>(attention.heads) *
                         static_cast<double>(attention.query) * static_cast<double>(attention.keys) *
                         static_cast<double>(attention.head_dim);
  return forward * (attention.backward ? 2.5 : 1) * (attention.causal ? 0.5 : 1);
}

}  // namespace

// The keys are what one thread block loops over, so they choose the rate; batch, heads and queries are blocks
// side by side.
Estimate attention_time(const Profile& profile, const Gpu& gpu, const Attention& attention) {
  std::map<double, Curve> by_head_dim;
  for (const AttentionSample& sample : profile.attention) {
    if (sample.causal != attention.causal || sample.backward != attention.backward) continue;
    by_head_dim[static_cast<double>(sample.head_dim)][static_cast<double>(sample.seq)] = sample.flops_per_s;
  }
  if (by_head_dim.empty()) {
    throw MissingCalibration(fmt::format("profile {} has no {}{} attention on {}", profile.name,
                                         attention.causal ? "causal " : "full ",
                                         attention.backward ? "backward" : "forward", gpu.name));
  }
  Curve at_this_length;
  bool extrapolated = false;
  for (const auto& [head_dim, curve] : by_head_dim) {
    const Reading reading = read_at(curve, static_cast<double>(attention.keys));
    at_this_length[head_dim] = reading.value;
    extrapolated = extrapolated || reading.outside;
  }
  const Reading rate = read_at(at_this_length, static_cast<double>(attention.head_dim));
  return {std::max(profile.launch_s, counted_flops(attention) / rate.value), extrapolated || rate.outside};
}

}  // namespace rehearse
