#include "memory/walked_stage.h"

#include "memory/lifetimes.h"

namespace rehearse {

namespace {

void gather_into(std::vector<int>& buffers, const std::vector<Kernel>& kernels, int buffer) {
  for (const Kernel& kernel : kernels) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (collective == nullptr || collective->op != CollectiveOp::all_gather) continue;
    if (axis_of(collective->group) != Axis::tp) continue;
    for (const TensorId id : kernel.writes) buffers[static_cast<std::size_t>(id)] = buffer;
  }
}

std::vector<int> buffers_of(const Block& block, int there) {
  std::vector<int> buffers(block.tensors.size(), 0);
  if (there >= 1) {
    gather_into(buffers, block.forward, 1);
    gather_into(buffers, block.backward_weight, 1);
  }
  if (there >= 2) gather_into(buffers, block.backward_input, 2);
  return buffers;
}

// The saved tensors, except those of the loss.
Marks for_host(const Block& block, const BlockWalk& walk) {
  Marks marks = walk.saved();
  const Marks loss = of_loss(block);
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = marks[i] && walk.counted()[i] && !loss[i];
  return marks;
}

}  // namespace

std::vector<WalkedBlock> walked_blocks(const Work& work, const WalkOptions& options, int gather_buffers) {
  std::vector<WalkedBlock> walked;
  const bool in_groups = recomputes_in_groups(work);
  for (const Block& block : work.blocks) {
    const BlockWalk walk(block, options);
    walked.push_back({&block, walk.events(in_groups), walk.saved(), walk.kept(), for_host(block, walk),
                      buffers_of(block, gather_buffers)});
  }
  return walked;
}

std::vector<WalkedStage> walked_stages(const Work& work, const std::vector<WalkedBlock>& blocks) {
  std::vector<WalkedStage> stages;
  for (const auto& parts : work.parts) {
    WalkedStage& stage = stages.emplace_back();
    for (const Repeated& part : parts) {
      for (std::int64_t n = 0; n < part.repeats; ++n) {
        stage.blocks.push_back(&blocks[static_cast<std::size_t>(part.block)]);
        stage.first_slot.push_back(stage.slots);
        stage.slots += stage.blocks.back()->block->tensors.size();
      }
    }
  }
  return stages;
}

}  // namespace rehearse
