// How many bytes of activations does one microbatch hold on a stage: while each of its ops runs, and between
// them?
//
// Found by walking the kernel lists (result/memory/block_walk.h). Layers follow each other in forward order,
// and in reverse order backward, each freeing what it saved.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/work.h"

namespace rehearse {

// `logits` are those of `total` that the loss reads and writes: logits, their copies, gradient and softmax.
struct LiveBytes {
  double total = 0;
  double logits = 0;
  double others() const { return total - logits; }
  LiveBytes operator+(const LiveBytes& b) const { return {total + b.total, logits + b.logits}; }
  LiveBytes operator-(const LiveBytes& b) const { return {total - b.total, logits - b.logits}; }
  LiveBytes operator*(double times) const { return {total * times, logits * times}; }
};

// Bytes of one microbatch on one rank of a stage. `forward`, `backward`, ... are the most while that op runs,
// with what the microbatch itself saved.
struct StageBytes {
  LiveBytes saved;  // from the end of F to the beginning of B or I
  LiveBytes kept;   // from the end of I to the beginning of W
  LiveBytes forward, backward, backward_input, backward_weight;
};

// By tensor of a block: whether the loss reads or writes it.
std::vector<bool> of_loss(const Block& block);

// By stage.
std::vector<StageBytes> stage_bytes(const Work& work);

}  // namespace rehearse
