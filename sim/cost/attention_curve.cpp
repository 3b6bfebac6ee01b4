#include <fmt/core.h>

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

// Published rates are of 16k tokens with 2048 hidden elements (the charts of FlashAttention), in thread
// blocks of 128 queries forward, of 128 keys backward.
constexpr double kTile = 128, kChartTokens = 16384, kChartHidden = 2048;

// Of `blocks` started one after the other as multiprocessors fall free: over their time on ever so many. None
// ends before the longest, and half of the longest runs on alone on average (Graham 1969, bounds of list
// scheduling). With a causal mask the longest takes twice the mean.
double tail(double blocks, double longest, int multiprocessors) {
  const double each = blocks / multiprocessors;
  return std::max(longest, each + longest / 2) / each;
}

// How much longer few blocks take than those of the charts, which keep a GPU full.
double fill(const Profile& profile, const Gpu& gpu, const Attention& attention) {
  if (gpu.multiprocessors == 0 || profile.how == How::measured) return 1;
  const auto heads = static_cast<double>(attention.batch) * static_cast<double>(attention.heads);
  const double rows = static_cast<double>(attention.backward ? attention.keys : attention.query);
  const double longest = attention.causal ? 2 : 1;
  const double chart_blocks = kChartTokens / kTile * kChartHidden / static_cast<double>(attention.head_dim);
  return tail(heads * std::ceil(rows / kTile), longest, gpu.multiprocessors) /
         tail(chart_blocks, longest, gpu.multiprocessors);
}

}  // namespace

// The keys are what one thread block loops over, so they choose the rate; batch, heads and queries are blocks
// side by side, of which there may be too few.
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
  const double seconds = counted_flops(attention) / rate.value * fill(profile, gpu, attention);
  return {std::max(profile.launch_s, seconds), extrapolated || rate.outside};
}

}  // namespace rehearse
