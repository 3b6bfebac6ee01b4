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

// Published rates are of 16k tokens with 2048 hidden elements (the charts of FlashAttention), in thread
// blocks of 128 queries forward, of 128 keys backward.
constexpr std::int64_t kTileKeys = 128;
constexpr double kTile = kTileKeys, kChartTokens = 16384, kChartHidden = 2048;

// Of `blocks` started one after the other as multiprocessors fall free: over their time on ever so many. None
// ends before the longest, and half of the longest runs on alone on average (Graham 1969, bounds of list
// scheduling). With a causal mask the longest takes twice the mean.
double tail(double blocks, double longest, int multiprocessors) {
  const double each = blocks / multiprocessors;
  return std::max(longest, each + longest / 2) / each;
}

// How much longer attention takes than if its blocks, or those of a sample, kept ever so many GPUs full. 1
// where nobody knows: of CPUs, and of measured samples whose heads were not written down.
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

// Seconds of its FLOPs at the peak, or of queries, keys, values and results moved once, and backward of their
// gradients too. Without a peak on record: of the bytes alone.
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

// cuDNN's backward pass in fp8 meets all keys before a query, in a window or not: its time grows as the
// square of the sequence (calibrate/data/misc/cudnn_sdpa.json).
Attention as_computed(Attention attention) {
  if (attention.backward && attention.operands != AttentionOperands::activations) attention.window = 0;
  return attention;
}

}  // namespace

// The keys are what one thread block loops over, so they choose the rate; batch, heads and queries are blocks
// side by side, of which there may be too few.
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
