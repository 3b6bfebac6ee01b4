// Which tensors does a stage hold, block by block, and in which buffer does each lie?
#pragma once

#include <vector>

#include "memory/block_walk.h"

namespace rehearse {

struct WalkedBlock {
  const Block* block = nullptr;
  BlockEvents events;
  Marks saved, kept;
  Marks to_host;                   // saved tensors that are offloaded, where activations are
  std::vector<int> gather_buffer;  // by tensor: the buffer for gathered ones that it lies in, from 1; or 0
};

// By block of `work`. `gather_buffers`: number of buffers that stay for the whole run. The first holds inputs
// that tensor-parallel ranks gather, in forward and for the gradients of weights. The second holds gathered
// gradients.
std::vector<WalkedBlock> walked_blocks(const Work& work, const WalkOptions& options, int gather_buffers);

// The blocks of a stage one by one, and a slot for each of their tensors.
struct WalkedStage {
  std::vector<const WalkedBlock*> blocks;
  std::vector<std::size_t> first_slot;  // by block
  std::size_t slots = 0;
};

// By stage; `blocks` must outlive them.
std::vector<WalkedStage> walked_stages(const Work& work, const std::vector<WalkedBlock>& blocks);

}  // namespace rehearse
