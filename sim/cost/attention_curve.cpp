#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "cost/curves.h"
#include "cost/interpolate.h"

namespace rehearse {

namespace {

// The samples count as the kernel computes: a causal mask skips half (Dao 2023, FlashAttention-2, section
// 4.1).
double counted_flops(const Attention& attention) {
  return flops(attention) * (attention.causal ? 0.5 : 1);
}

// Keys that a thread block loops over.
double loop_length(const Attention& attention) {
  const std::int64_t longest =
      attention.window > 0 ? std::min(attention.window, attention.keys) : attention.keys;
  return static_cast<double>(longest);
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
    const Reading reading = read_at(curve, loop_length(attention));
    at_this_length[head_dim] = reading.value;
    extrapolated = extrapolated || reading.outside;
  }
  const Reading rate = read_at(at_this_length, static_cast<double>(attention.head_dim));
  return {std::max(profile.launch_s, counted_flops(attention) / rate.value), extrapolated || rate.outside};
}

}  // namespace rehearse
