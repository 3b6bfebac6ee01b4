// Does a plan fit: has each GPU room for all its memory?
//
// Counted: the peak of PyTorch's allocator (memory/memory.h), CUDA's context and NCCL's buffers
// (cost/communicators.h). Not counted: free segments, which the allocator reserves beyond its peak
// (memory/reserved.h). It returns them before it gives up. It cannot return fragments in use. Where they do
// not fit, the plan needs another setting of the allocator (memory/verdict.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/rank_memory.h"

namespace rehearse {

// Buffer bytes on one GPU: NCCL's by communicator, and the dispatcher's by its name: {"world", 4e8}, ...
using NcclBuffers = std::vector<std::pair<std::string, double>>;

// Memory of a GPU outside PyTorch's allocator. Zeros where there is no CUDA and no NCCL.
struct OutsideAllocator {
  double context_bytes = 0;
  NcclBuffers communicators = {};
  double nccl_bytes() const;
  double all() const { return context_bytes + nccl_bytes(); }
};

// One GPU of a pipeline rank at its fullest moment.
struct Footprint {
  int rank = 0;           // pipeline rank
  double peak_bytes = 0;  // of the allocator
  OutsideAllocator outside = {};
  double capacity_bytes = 0;                  // memory of the GPU
  std::optional<double> reserved_bytes = {};  // by the allocator, with its fragments; none: not known

  double needed_bytes() const { return peak_bytes + outside.all(); }
  double room_bytes() const { return capacity_bytes - needed_bytes(); }  // below 0: too much by so many
  bool fits() const { return needed_bytes() <= capacity_bytes; }
  bool fragments_fit() const { return reserved_bytes.value_or(0) + outside.all() <= capacity_bytes; }
};

// Memory on the GPUs of each rank of `memory`. `outside`: by pipeline rank, or empty for none.
std::vector<Footprint> footprints(const std::vector<RankMemory>& memory,
                                  const std::vector<OutsideAllocator>& outside, double capacity_bytes);

// The GPU with the least room, the first of equal ones. The plan fits if this GPU has room. Zeros for no
// GPUs.
Footprint fullest(const std::vector<Footprint>& gpus);

// Like "61.2 GB at the peak, CUDA's context 1.06 GB, NCCL's buffers 3.1 GB".
std::string parts_in_words(const Footprint& gpu);

// "20.1 GB (23.5 %) free", or "too much".
std::string room_in_words(const Footprint& gpu);

// "pipeline rank 0 needs 65.4 GB of 85.5 GB: 61.2 GB at the peak, ..."; parts only if there are several.
std::string in_words(const Footprint& gpu);

}  // namespace rehearse
