#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "cost/curves.h"
#include "cost/interpolate.h"
#include "cost/roofline.h"
#include "cost/timed_on.h"

namespace rehearse {

namespace {

// Published rates belong to 16k tokens with 2048 hidden elements (the charts of FlashAttention). Thread
// blocks hold 128 queries forward and 128 keys backward.
constexpr std::int64_t kTileKeys = 128;
constexpr double kTile = kTileKeys, kChartTokens = 16384, kChartHidden = 2048;

// The time of `blocks` on this many multiprocessors, over their time with all multiprocessors busy to the
// end. Each block starts as soon as a multiprocessor is free. The total is never below the longest block, and
// on average half of the longest block runs alone at the end (Graham 1969, bounds of list scheduling). With a
// causal mask the longest block takes twice the mean.
double tail(double blocks, double longest, int multiprocessors) {
  const double each = blocks / multiprocessors;
  return std::max(longest, each + longest / 2) / each;
}

// How much longer attention, or a sample of it, takes than with all multiprocessors busy to the end. 1 where
// this is unknown: for CPUs, and for measured samples without recorded heads.
class Fill {
 public:
  Fill(const Profile& profile, const Gpu& gpu, const Attention& attention)
      : multiprocessors_(gpu.multiprocessors),
        longest_(attention.causal ? 2 : 1),
        head_dim_(attention.head_dim) {
    const auto tells_heads = [](const AttentionSample& sample) { return sample.heads > 0; };
    if (profile.how == How::measured &&
        !std::all_of(profile.attention.begin(), profile.attention.end(), tells_heads))
      multiprocessors_ = 0;
  }

  double of(const Attention& attention) const {
    return of(attention.batch * attention.heads, attention.backward ? attention.keys : attention.query);
  }
  double of(const AttentionSample& sample) const {
    if (sample.heads > 0) return of(sample.heads, sample.seq);
    return of(kChartTokens / kTile * kChartHidden / static_cast<double>(head_dim_));
  }

 private:
  double of(std::int64_t heads, std::int64_t rows) const {
    return of(static_cast<double>(heads) * std::ceil(static_cast<double>(rows) / kTile));
  }
  double of(double blocks) const {
    return multiprocessors_ == 0 ? 1 : tail(blocks, longest_, multiprocessors_);
  }

  int multiprocessors_;
  double longest_;  // block, over their mean
  std::int64_t head_dim_;
};

}  // namespace

std::int64_t looped_keys(const Attention& attention) {
  return attention.window > 0 ? std::min(attention.window + kTileKeys, attention.keys) : attention.keys;
}

double tiled_flops(const Attention& attention) {
  Attention tiled = attention;
  if (attention.window > 0) tiled.window = looped_keys(attention);
  return flops(tiled) * (attention.causal ? 0.5 : 1);
}

namespace {

const std::vector<AttentionSample>& samples_of(const Profile& profile, AttentionOperands operands) {
  if (operands == AttentionOperands::activations) return profile.attention;
  const char* name = operands == AttentionOperands::fp8 ? "fp8" : "mxfp8";
  const auto found = profile.attention_of.find(name);
  if (found == profile.attention_of.end())
    throw MissingCalibration(fmt::format("profile {} has no attention in {}", profile.name, name));
  return found->second;
}

// The precision that its GEMMs run in; plans of fp8 and fp4 keep attention in bf16.
std::string computed_in(const Attention& attention, const std::string& precision) {
  if (attention.operands != AttentionOperands::activations) return "fp8";
  return precision == "fp8" || precision == "fp4" ? "bf16" : precision;
}

// Seconds at the roofline. The bytes are queries, keys, values and results, each moved once; the backward
// pass moves their gradients too. Without a peak on record, bytes alone count.
double bound(const Gpu& gpu, const Attention& attention, const std::string& precision) {
  const std::int64_t of_values = attention.v_head_dim > 0 ? attention.v_head_dim : attention.head_dim;
  const auto width = static_cast<double>(attention.head_dim + of_values);
  const double rows =
      static_cast<double>(attention.batch) * (static_cast<double>(attention.heads * attention.query) +
                                              static_cast<double>(attention.kv_heads * attention.keys));
  const double bytes = bytes_of_operand(precision) * rows * width * (attention.backward ? 2 : 1);
  const double stated = peak_of(gpu, precision);
  const double peak = stated > 0 ? stated : peak_of(gpu, "fp32");  // of a CPU that emulates 16-bit numbers
  const double compute = peak > 0 ? tiled_flops(attention) / peak : 0;
  return std::max(compute, gpu.memory_bandwidth > 0 ? bytes / gpu.memory_bandwidth : 0);
}

// cuDNN's backward pass in fp8 visits all keys before a query, with or without a window. Its time grows as
// the square of the sequence (calibrate/data/misc/cudnn_sdpa.json).
Attention as_computed(Attention attention) {
  if (attention.backward && attention.operands != AttentionOperands::activations) attention.window = 0;
  return attention;
}

}  // namespace

// A thread block loops over the keys, so their number chooses the rate. Batch, heads and queries become
// blocks side by side. There may be too few blocks to fill the GPU.
Estimate attention_time(const Profile& profile, const Gpu& gpu, const Attention& asked,
                        const std::string& precision) {
  const Attention attention = as_computed(asked);
  const Gpu timed = timed_on(profile, gpu);
  const Fill fill(profile, timed, attention);
  std::map<double, Curve> by_head_dim;
  for (const AttentionSample& sample : samples_of(profile, attention.operands)) {
    if (sample.causal != attention.causal || sample.backward != attention.backward) continue;
    by_head_dim[static_cast<double>(sample.head_dim)][static_cast<double>(sample.seq)] =
        sample.flops_per_s * fill.of(sample);
  }
  if (by_head_dim.empty()) {
    throw MissingCalibration(fmt::format("profile {} has no {}{} attention on {}", profile.name,
                                         attention.causal ? "causal " : "full ",
                                         attention.backward ? "backward" : "forward", gpu.name));
  }
  Curve at_this_length;
  bool extrapolated = false;
  for (const auto& [head_dim, curve] : by_head_dim) {
    const Reading reading = read_at(curve, static_cast<double>(looped_keys(attention)));
    at_this_length[head_dim] = reading.value;
    extrapolated = extrapolated || reading.outside;
  }
  const Reading rate = read_at(at_this_length, static_cast<double>(attention.head_dim));
  const double timed_s = std::max(profile.launch_s, tiled_flops(attention) / rate.value * fill.of(attention));
  const std::string computed = computed_in(attention, precision);
  const RooflinePair bounds{bound(timed, attention, computed), bound(gpu, attention, computed)};
  const double seconds = timed_s * carried(profile.launch_s, bounds);
  return {std::max(profile.launch_s, seconds), extrapolated || rate.outside};
}

}  // namespace rehearse
