#include "cost/scan_time.h"

#include <algorithm>

namespace rehearse {

namespace {

// Rates that the Triton kernels of mamba-ssm reach in the forward pass on H100
// (calibrate/data/misc/state_space.json): a share of the memory's bandwidth, and FLOP/s of GEMMs on each
// multiprocessor. Backward kernels are assumed to reach the same.
constexpr double kOfBandwidth = 0.54, kFlopsOfMultiprocessor = 1.9e12;
// Kernels on the lower triangle of a chunk skip the tiles above the diagonal.
constexpr double kTileRows = 64;

struct Traffic {
  double bytes = 0, flops = 0;
};

// Each tensor moves once, with `element_bytes` for an element of activations. Scores, steps and states at the
// ends of chunks are in fp32 (mamba_ssm/ops/triton/ssd_combined.py, _mamba_chunk_scan_combined_fwd and _bwd).
Traffic traffic(const Scan& scan, double element_bytes) {
  const auto tokens = static_cast<double>(scan.tokens), heads = static_cast<double>(scan.heads);
  const auto chunk = static_cast<double>(scan.chunk), state = static_cast<double>(scan.state);
  const double inner = heads * static_cast<double>(scan.head_dim);
  const double map = static_cast<double>(scan.groups) * state;
  const double causal = (1 + std::min(1.0, kTileRows / chunk)) / 2;
  const double rows = element_bytes * tokens * inner, maps = element_bytes * tokens * map;
  const double states = 4 * tokens / chunk * inner * state;
  const double scores = 4 * tokens * chunk * static_cast<double>(scan.groups), steps = 4 * tokens * heads;
  const double squares = chunk * map, halves = causal * chunk * inner, passed = inner * state;
  if (!scan.backward)
    return {5 * rows + 4 * maps + 3 * states + (1 + causal) * scores + 6.5 * steps,
            2 * tokens * (squares + halves + 2 * passed)};
  return {17 * rows + 27 * maps + 8.5 * states + (6 + 2 * causal) * scores + (39.5 + chunk / 32) * steps,
          2 * tokens * (3 * squares + 3 * halves + 5 * passed)};
}

}  // namespace

double scan_seconds(const Gpu& gpu, const Scan& scan, double element_bytes, double bytes) {
  Traffic all = traffic(scan, element_bytes);
  if (scan.of_linear_attention) all.bytes = bytes;
  return all.bytes / (kOfBandwidth * gpu.memory_bandwidth) +
         all.flops / (kFlopsOfMultiprocessor * gpu.multiprocessors);
}

}  // namespace rehearse
