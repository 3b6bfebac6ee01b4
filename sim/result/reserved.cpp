#include "result/reserved.h"

#include <cmath>
#include <map>

#include "plan/recipe.h"
#include "result/block_walk.h"
#include "result/caching_allocator.h"
#include "result/late_blocks.h"

namespace rehearse {

namespace {

using Handle = CachingAllocator::Handle;
constexpr Handle kNone = -1;

std::size_t index(TensorId tensor) {
  return static_cast<std::size_t>(tensor);
}

struct WalkedBlock {
  const Block* block = nullptr;
  BlockEvents events;
  Marks saved, kept;
};

// The blocks of a stage, one by one.
struct WalkedStage {
  std::vector<const WalkedBlock*> blocks;
  std::vector<std::size_t> first_slot;  // by block, of its tensors
  std::size_t slots = 0;
};

class Replay {
 public:
  Replay(const Plan& plan, const Work& work, double capacity_bytes)
      : lead_(host_lead(plan)), allocator_(std::llround(capacity_bytes)) {
    for (const Block& block : work.blocks) {
      const BlockWalk walk(block, drops_fresh_gradients(plan));
      blocks_.push_back({&block, walk.events(), walk.saved(), walk.kept()});
    }
    for (const auto& parts : work.parts) stages_.push_back(stage_of(parts));
  }

  void iteration(const RankOps& ops, const std::vector<LateBlocks>& late) {
    for (const Op& op : ops.ops()) {
      if (!is_compute(op.kind) || op.part > 0 || op.stage >= stages_.size()) continue;
      if (lead_.waits_before_forward && op.kind == OpKind::forward) wait_for_gpu();
      run(op);
      if (lead_.waits_for_messages) wait_for_gpu();
    }
    wait_for_gpu();
    for (const LateBlocks& together : late) {
      std::vector<Handle> handles;
      for (const double bytes : together) handles.push_back(allocator_.allocate(std::llround(bytes)));
      for (const Handle handle : handles) allocator_.free(handle);
    }
  }

  const CachingAllocator& allocator() const { return allocator_; }

 private:
  using Slots = std::vector<Handle>;

  WalkedStage stage_of(const std::vector<Repeated>& parts) const {
    WalkedStage stage;
    for (const Repeated& part : parts) {
      for (std::int64_t n = 0; n < part.repeats; ++n) {
        stage.blocks.push_back(&blocks_[static_cast<std::size_t>(part.block)]);
        stage.first_slot.push_back(stage.slots);
        stage.slots += stage.blocks.back()->block->tensors.size();
      }
    }
    return stage;
  }

  void run(const Op& op) {
    stage_ = &stages_[op.stage];
    const auto microbatch = microbatches_.try_emplace({op.stage, op.microbatch}, stage_->slots, kNone).first;
    slots_ = &microbatch->second;
    if (op.kind == OpKind::forward) forward();
    if (op.kind == OpKind::backward) backward(&BlockEvents::backward, &BlockEvents::backward_of_recomputed);
    if (op.kind == OpKind::backward_input)
      backward(&BlockEvents::backward_input, &BlockEvents::backward_input_of_recomputed);
    if (op.kind == OpKind::backward_weight)
      for (std::size_t b = stage_->blocks.size(); b-- > 0;)
        play(b, stage_->blocks[b]->events.backward_weight);
    if (!completes_gradient(op.kind)) return;
    for (Handle& handle : *slots_) drop(handle);
    microbatches_.erase(microbatch);
  }

  Handle& slot(std::size_t block, TensorId tensor) {
    return (*slots_)[stage_->first_slot[block] + index(tensor)];
  }

  void make(std::size_t block, TensorId tensor) {
    Handle& handle = slot(block, tensor);
    if (handle != kNone) return;
    allocator_.reach(executed());
    handle = allocator_.allocate(std::llround(stage_->blocks[block]->block->tensors[index(tensor)].bytes()));
    exchanged_.resize(std::max(exchanged_.size(), static_cast<std::size_t>(handle) + 1));
    exchanged_[static_cast<std::size_t>(handle)] = false;
  }

  void drop(Handle& handle) {
    if (handle == kNone) return;
    if (exchanged_[static_cast<std::size_t>(handle)])
      allocator_.free_at(handle, last_exchange_);
    else
      allocator_.free(handle);
    handle = kNone;
  }

  void play(std::size_t block, const TensorEvents& events) {
    const std::int64_t before = launched_;
    for (const TensorEvent& event : events) {
      launched_ = before + event.launches;
      Handle& handle = slot(block, event.tensor);
      if (event.change == TensorChange::comes) make(block, event.tensor);
      if (event.change == TensorChange::goes) drop(handle);
      if (event.change == TensorChange::exchanged && lead_.records_streams && handle != kNone) {
        exchanged_[static_cast<std::size_t>(handle)] = true;
        last_exchange_ = launched_;
      }
    }
  }

  // The launch that the GPU has come to at least.
  std::int64_t executed() const { return std::max(waited_, launched_ - kLaunchQueue); }

  void wait_for_gpu() {
    waited_ = launched_;
    allocator_.reach(waited_);
  }

  // A tensor passes from block to block: in its memory, unless the one that made it keeps it too.
  void hand_over(std::size_t from, TensorId tensor, const Marks& stays, std::size_t to, TensorId as) {
    if (as < 0) return;
    if (tensor < 0 || stays[index(tensor)] || slot(from, tensor) == kNone) return make(to, as);
    drop(slot(to, as));
    std::swap(slot(from, tensor), slot(to, as));
  }

  void forward() {
    const std::size_t last = stage_->blocks.size() - 1;
    for (std::size_t b = 0; b <= last; ++b) {
      const WalkedBlock& walked = *stage_->blocks[b];
      const TensorId input = walked.block->input, output = walked.block->output;
      if (b == 0 && input >= 0) make(b, input);
      play(b, walked.events.forward);
      if (b < last) hand_over(b, output, walked.saved, b + 1, stage_->blocks[b + 1]->block->input);
      if (b == last && output >= 0 && !walked.saved[index(output)]) drop(slot(b, output));
    }
  }

  // Of blocks that are recomputed together the last one's recompute is played with its backward.
  void backward(TensorEvents BlockEvents::*whole, TensorEvents BlockEvents::*rest) {
    for (std::size_t end = stage_->blocks.size(); end > 0;) {
      std::size_t first = end - 1;
      while (first > 0 && stage_->blocks[first]->block->joins_previous) --first;
      for (std::size_t b = first; b < end; ++b) {
        const Block& block = *stage_->blocks[b]->block;
        if (block.joins_previous && block.input >= 0) make(b, block.input);
        if (b + 1 < end) play(b, stage_->blocks[b]->events.recompute);
      }
      for (std::size_t b = end; b-- > first;) {
        receive_gradient(b);
        play(b, stage_->blocks[b]->events.*(b + 1 == end ? whole : rest));
      }
      end = first;
    }
    const WalkedBlock& front = *stage_->blocks.front();
    const TensorId sent = front.block->input_gradient;
    if (sent >= 0 && !front.kept[index(sent)]) drop(slot(0, sent));
  }

  void receive_gradient(std::size_t b) {
    const TensorId gradient = stage_->blocks[b]->block->output_gradient;
    if (gradient < 0) return;
    if (b + 1 == stage_->blocks.size()) return make(b, gradient);
    const WalkedBlock& next = *stage_->blocks[b + 1];
    hand_over(b + 1, next.block->input_gradient, next.kept, b, gradient);
  }

  HostLead lead_;
  std::vector<WalkedBlock> blocks_;
  std::vector<WalkedStage> stages_;
  CachingAllocator allocator_;
  std::map<std::pair<std::uint16_t, std::int32_t>, Slots> microbatches_;  // stage, number
  const WalkedStage* stage_ = nullptr;                                    // of the op that runs
  Slots* slots_ = nullptr;                                                // of its microbatch
  std::vector<bool> exchanged_;                                           // by handle
  std::int64_t launched_ = 0, waited_ = 0, last_exchange_ = 0;
};

}  // namespace

HostLead host_lead(const Plan& plan) {
  if (plan.launch_blocking) return {};
  const bool sends = plan.pp > 1;
  switch (plan.framework) {
    case Framework::megatron_2021:
      return {true, true, sends && plan.zero == 0};
    case Framework::deepspeed_2021:
    case Framework::deepspeed:
      return {true, true, false};
    case Framework::nanotron:
      return {true, false, sends};
    case Framework::internevo:
      return {true, false, false};
    case Framework::megatron_core:
    case Framework::fsdp1:
    case Framework::fsdp:
    case Framework::torchtitan:
      return {};
  }
  return {};
}

ReservedBytes replay_allocations(const RankOps& ops, const RankMemory& memory, const Plan& plan,
                                 const Work& work, double capacity_bytes) {
  constexpr int kIterations = 4;
  Replay replay(plan, work, capacity_bytes);
  const std::vector<LateBlocks> late = late_blocks(memory, plan, work);
  std::int64_t before = -1;
  for (int i = 0; i < kIterations && replay.allocator().most_reserved_bytes() != before; ++i) {
    before = replay.allocator().most_reserved_bytes();
    replay.iteration(ops, late);
  }
  return {static_cast<double>(replay.allocator().most_allocated_bytes()),
          static_cast<double>(replay.allocator().most_reserved_bytes())};
}

double reserved_bytes(const RankOps& ops, const RankMemory& memory, const Plan& plan, const Work& work,
                      double capacity_bytes) {
  const double replayed = memory.activations_bytes + memory.logits_bytes + memory.passing_gradients_bytes;
  const double steady = memory.peak_bytes - replayed;
  return steady + replay_allocations(ops, memory, plan, work, capacity_bytes - steady).reserved;
}

}  // namespace rehearse
