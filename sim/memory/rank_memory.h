// How many bytes does one GPU of a pipeline rank hold at its peak, item by item?
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rehearse {

// Microbatches whose activations of a stage are live.
struct LiveMicrobatches {
  int stage = 0;
  std::vector<int> microbatches;  // ascending
};

// The bytes of parameters, gradients, optimizer, activations, logits and buffers sum to peak_bytes.
struct RankMemory {
  int rank = 0;                  // pipeline rank
  int stage = 0;                 // its first stage
  double parameters = 0;         // elements, before they are divided among replicas
  double expert_parameters = 0;  // those of them that Plan::edp() ranks hold
  double parameters_bytes = 0, gradients_bytes = 0, optimizer_bytes = 0, activations_bytes = 0,
         logits_bytes = 0,  // saved, and their copies in the loss
      buffers_bytes = 0, peak_bytes = 0;
  double master_bytes = 0;   // of the optimizer's: master weights
  double left_bytes = 0;     // most activations between ops when a backward has ended
  double working_bytes = 0;  // of the activations: gradients, recomputed tensors, ... of the op that runs
  double passing_gradients_bytes = 0;  // of the gradients: those that come with a backward pass
  double late_bytes = 0;       // of the buffers: late_blocks() beyond the room that the activations leave
  double workspace_bytes = 0;  // of the buffers: cuBLAS's workspace
  std::optional<double> reserved_bytes = {};  // by the allocator; none where that was not replayed
  std::int32_t peak_op = -1;                  // index of the op of its list that runs then; -1: none
  std::int32_t peak_microbatch = 0;           // of that op
  double peak_time_s = 0;                     // when that op begins
  std::vector<LiveMicrobatches> alive;
};

}  // namespace rehearse
