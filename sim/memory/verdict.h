// Does a plan fit, and with how much to spare? Every verb and page uses this one answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/omitted_effect.h"
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
  does_not_fit,  // some GPU needs more memory than it has
  undecided      // an option that is not counted can turn the answer
};
std::string to_string(Verdict verdict);  // "fits", "tight", "does not fit", "not decided"

// PyTorch's setting with which the allocator loses nothing to fragments.
constexpr const char* kExpandableSegments = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

struct MemoryVerdict {
  Verdict verdict = Verdict::fits;
  Footprint gpu;              // the one with the least room
  double headroom_bytes = 0;  // that is to stay free on it
  bool leaves_headroom = true;
  bool needs_expandable_segments = false;  // fragments of some GPU do not fit, its peak does

  bool fits() const { return gpu.fits(); }  // as counted
  bool is_decided() const { return verdict != Verdict::undecided; }
};

// A plan without GPUs fits.
MemoryVerdict memory_verdict(const std::vector<Footprint>& gpus, const Headroom& headroom);

// Leaves the verdict undecided where an effect goes against it: less memory where the plan does not fit, more
// where it fits.
void weigh(const std::vector<OmittedEffect>& effects, MemoryVerdict& verdict);

// "does not fit: 1.46 TB of 85 GB on pipeline rank 0, 1.37 TB too much", "tight: 1.5 GB (1.8 %) free, ...",
// "fits: 15.3 GB (18.0 %) free", "not decided: as counted, 131 GB of 85 GB ...". One sentence without a full
// stop.
std::string in_words(const MemoryVerdict& verdict);

}  // namespace rehearse
