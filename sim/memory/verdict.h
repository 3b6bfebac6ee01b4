// Does a plan fit, and with how much to spare? Every verb and page uses this one answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/footprint.h"

namespace rehearse {

// Memory of a GPU that is to stay free: for other libraries, other versions and uneven batches.
struct Headroom {
  double share = 0.05;               // of the GPU's memory
  std::optional<double> bytes = {};  // in its place
  double of(double capacity_bytes) const { return bytes.value_or(share * capacity_bytes); }
};

enum class Verdict : std::uint8_t {
  fits,
  tight,  // fits, but not with the headroom, or not with the fragments of the allocator's default setting
  does_not_fit  // some GPU needs more memory than it has
};
std::string to_string(Verdict verdict);  // "fits", "tight", "does not fit"

// PyTorch's setting with which the allocator loses nothing to fragments.
constexpr const char* kExpandableSegments = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

struct MemoryVerdict {
  Verdict verdict = Verdict::fits;
  Footprint gpu;              // the one with the least room
  double headroom_bytes = 0;  // that is to stay free on it
  bool leaves_headroom = true;
  bool needs_expandable_segments = false;  // fragments of some GPU do not fit, its peak does

  bool fits() const { return verdict != Verdict::does_not_fit; }
};

// A plan without GPUs fits.
MemoryVerdict memory_verdict(const std::vector<Footprint>& gpus, const Headroom& headroom);

// "does not fit: 1.46 TB of 85 GB on pipeline rank 0, 1.37 TB too much", "tight: 1.5 GB (1.8 %) free, ...",
// "fits: 15.3 GB (18.0 %) free". One sentence without a full stop.
std::string in_words(const MemoryVerdict& verdict);

}  // namespace rehearse
