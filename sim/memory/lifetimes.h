// How many bytes of activations does one microbatch hold on a stage, while each of its ops runs and between
// ops?
//
// Computed by a walk through the kernel lists (memory/block_walk.h). Layers follow each other in forward
// order, and in reverse order backward. In backward each layer releases its saved tensors.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/work.h"
#include "schedule/schedule.h"

namespace rehearse {

// `logits`: the part of `total` that the loss reads and writes, that is logits, their copies, gradient and
// softmax.
struct LiveBytes {
  double total = 0;
  double logits = 0;
  double others() const { return total - logits; }
  LiveBytes operator+(const LiveBytes& b) const { return {total + b.total, logits + b.logits}; }
  LiveBytes operator-(const LiveBytes& b) const { return {total - b.total, logits - b.logits}; }
  LiveBytes operator*(double times) const { return {total * times, logits * times}; }
};

// Bytes of one microbatch on one rank of a stage. `forward`, `backward`, ... are the peaks while that op
// runs, including tensors that the microbatch saved.
struct StageBytes {
  // Blocks that follow each other; `loss`: the loss is one of its kernels.
  struct Blocks {
    double repeats = 1;
    bool loss = false;
    LiveBytes saved, forward, backward;
    LiveBytes input, output_gradient;
  };

  LiveBytes saved;  // from the end of F to the beginning of B or I
  LiveBytes kept;   // from the end of I to the beginning of W
  LiveBytes forward, backward, backward_input, backward_weight;
  std::vector<Blocks> blocks;  // in forward order, but for those that are recomputed together
};

// The peak while a forward and the backward of another microbatch take turns (Megatron core,
// models/common/model_chunk_schedule_plan.py). The loss of the backward comes first. Then one block forward
// and one block backward alternate. The loss of the forward comes last.
LiveBytes beside_each_other(const StageBytes& forward, const StageBytes& backward);

// Live bytes of the microbatches of a pass before, during and after it.
struct PassMemory {
  LiveBytes before, peak, after;
};

// `backward`: the pass that takes turns with the forward pass `op`, or nullptr. Zeros for ops of other kinds.
PassMemory pass_memory(const Op& op, const Op* backward, const std::vector<StageBytes>& stages);

bool has_loss(const Block& block);

// By tensor of a block: whether the loss reads or writes it.
std::vector<bool> of_loss(const Block& block);

// By stage.
std::vector<StageBytes> stage_bytes(const Work& work);

// By stage: activations that one microbatch offloads, where the plan offloads them.
std::vector<double> offloaded_bytes(const Work& work);

}  // namespace rehearse
