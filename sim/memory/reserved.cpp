#include "memory/reserved.h"

#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "memory/activation_events.h"
#include "memory/caching_allocator.h"
#include "memory/late_blocks.h"
#include "memory/lifetimes.h"
#include "memory/walked_stage.h"
#include "plan/frameworks/traits.h"
#include "plan/recipe.h"

namespace rehearse {

namespace {

using Handle = CachingAllocator::Handle;
constexpr Handle kNone = -1;

std::size_t index(TensorId tensor) {
  return static_cast<std::size_t>(tensor);
}

// Launches of a collective in the queue of the compute kernels: an event and a wait, or also the collective's
// kernel with its own wait and event.
constexpr std::int32_t kOwnQueue = 2, kSharedQueue = 5;

class Replay {
 public:
  Replay(const Plan& plan, const Work& work, double capacity_bytes)
      : habits_(memory_habits(plan)),
        blocks_(walked_blocks(work,
                              {drops_fresh_gradients(plan) || gradients_come_anew(plan),
                               habits_.shares_queue ? kSharedQueue : kOwnQueue},
                              habits_.gather_buffers)),
        stages_(walked_stages(work, blocks_)),
        allocator_(std::llround(capacity_bytes)) {}

  void iteration(const RankOps& ops, const std::vector<LateBlocks>& late, std::int64_t microbatches) {
    walk_activations(ops, stages_.size(),
                     [&](const ActivationEvent& event) { follow(event, ops, microbatches); });
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
  struct Buffer {
    std::int64_t bytes = 0;
    Handle handle = kNone;
  };

  void follow(const ActivationEvent& event, const RankOps& ops, std::int64_t microbatches) {
    using Kind = ActivationEvent::Kind;
    const Op& op = ops[event.op];
    const Op* backward = event.backward;
    const bool begins = event.kind == Kind::begins;
    if (op.microbatch >= microbatches) {
      if (begins && backward != nullptr && backward->microbatch < microbatches) pass(*backward, nullptr);
      return;
    }
    if (event.kind == Kind::reloads) reload(op);
    if (event.kind == Kind::offloaded) offload(op);
    if (begins) pass(op, backward);
  }

  void pass(const Op& op, const Op* backward) {
    if (stages_[op.stage].blocks.empty()) return;
    if (habits_.waits_before_forward && op.kind == OpKind::forward) wait_for_gpu();
    if (backward != nullptr && !stages_[backward->stage].blocks.empty()) {
      run_concurrently(op, *backward);
    } else {
      run(op);
    }
    if (habits_.waits_after_pass) wait_for_gpu();
  }

  using ByMicrobatch = std::map<std::pair<std::uint16_t, std::int32_t>, Slots>;  // stage, number

  ByMicrobatch::iterator turn_to(const Op& op) {
    stage_ = &stages_[op.stage];
    const auto microbatch = microbatches_.try_emplace({op.stage, op.microbatch}, stage_->slots, kNone).first;
    slots_ = &microbatch->second;
    return microbatch;
  }

  // Calls visit(block, tensor) for each tensor that is offloaded.
  template <typename Visit>
  void offloaded(const Op& op, Visit visit) {
    turn_to(op);
    for (std::size_t b = 0; b < stage_->blocks.size(); ++b) {
      const Marks& marks = stage_->blocks[b]->to_host;
      for (std::size_t i = 0; i < marks.size(); ++i)
        if (marks[i]) visit(b, static_cast<TensorId>(i));
    }
  }
  void offload(const Op& op) {
    if (const auto leaving = leaving_.extract({op.stage, op.microbatch}); !leaving.empty()) {
      for (Handle& handle : leaving.mapped()) drop(handle);
      return;
    }
    offloaded(op, [this](std::size_t block, TensorId tensor) { drop(slot(block, tensor)); });
  }
  // Tensors may return before the copies that were sent are released.
  void reload(const Op& op) {
    Slots leaving;
    offloaded(op, [&](std::size_t block, TensorId tensor) {
      if (const Handle sent = std::exchange(slot(block, tensor), kNone); sent != kNone)
        leaving.push_back(sent);
      make(block, tensor);
    });
    if (!leaving.empty()) leaving_[{op.stage, op.microbatch}] = leaving;
  }

  void run(const Op& op) {
    const auto microbatch = turn_to(op);
    const std::size_t blocks = stage_->blocks.size();
    if (op.kind == OpKind::forward)
      for (std::size_t b = 0; b < blocks; ++b) forward(b);
    const bool whole = op.kind == OpKind::backward;
    if (begins_backward(op.kind)) {
      for (std::size_t end = blocks; end > 0;)
        end = whole ? backward(end, &BlockEvents::backward, &BlockEvents::backward_of_recomputed)
                    : backward(end, &BlockEvents::backward_input, &BlockEvents::backward_input_of_recomputed);
      send_gradient();
    }
    if (op.kind == OpKind::backward_weight)
      for (std::size_t b = stage_->blocks.size(); b-- > 0;)
        play(b, stage_->blocks[b]->events.backward_weight);
    if (completes_gradient(op.kind)) let_go(microbatch);
  }

  // Block by block in turns, as in memory/lifetimes.h (beside_each_other).
  void run_concurrently(const Op& ahead, const Op& behind) {
    turn_to(behind);
    std::size_t next = 0, end = stage_->blocks.size();
    const auto at_loss = [this](std::size_t block) { return has_loss(*stage_->blocks[block]->block); };
    const auto go_back = [&] {
      turn_to(behind);
      end = backward(end, &BlockEvents::backward, &BlockEvents::backward_of_recomputed);
      return end > 0;
    };
    const auto may_go_on = [&] {
      turn_to(ahead);
      return next < stage_->blocks.size() && !at_loss(next);
    };
    bool more = end > 0;
    while (more && at_loss(end - 1)) more = go_back();
    while (more && may_go_on()) {
      forward(next++);
      more = go_back();
    }
    while (more) more = go_back();
    const auto microbatch = turn_to(behind);
    send_gradient();
    let_go(microbatch);
    for (turn_to(ahead); next < stage_->blocks.size(); ++next) forward(next);
  }

  Handle& slot(std::size_t block, TensorId tensor) {
    return (*slots_)[stage_->first_slot[block] + index(tensor)];
  }

  void make(std::size_t block, TensorId tensor) {
    Handle& handle = slot(block, tensor);
    if (handle != kNone) return;
    allocator_.reach(executed());
    const WalkedBlock& walked = *stage_->blocks[block];
    const std::int64_t bytes = std::llround(walked.block->tensors[index(tensor)].bytes());
    if (const int buffer = walked.gather_buffer[index(tensor)]; buffer > 0)
      return keep(buffers_[buffer - 1], bytes);
    handle = allocator_.allocate(bytes);
    exchanged_.resize(std::max(exchanged_.size(), static_cast<std::size_t>(handle) + 1));
    exchanged_[static_cast<std::size_t>(handle)] = false;
  }

  void keep(Buffer& buffer, std::int64_t bytes) {
    if (buffer.bytes >= bytes) return;
    if (buffer.bytes > 0) allocator_.free(buffer.handle);
    buffer = {bytes, allocator_.allocate(bytes)};
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
      if (event.change == TensorChange::exchanged && habits_.records_streams && handle != kNone) {
        exchanged_[static_cast<std::size_t>(handle)] = true;
        last_exchange_ = launched_;
      }
    }
  }

  // The launch that the GPU has reached at least.
  std::int64_t executed() const { return std::max(waited_, launched_ - kLaunchQueue); }

  void wait_for_gpu() {
    waited_ = launched_;
    allocator_.reach(waited_);
  }

  // A tensor passes from block to block. It stays in its memory, unless the block that made it keeps it too.
  void hand_over(std::size_t from, TensorId tensor, const Marks& stays, std::size_t to, TensorId as) {
    if (as < 0) return;
    if (tensor < 0 || stays[index(tensor)] || slot(from, tensor) == kNone) return make(to, as);
    drop(slot(to, as));
    std::swap(slot(from, tensor), slot(to, as));
  }

  void forward(std::size_t b) {
    const std::size_t last = stage_->blocks.size() - 1;
    const WalkedBlock& walked = *stage_->blocks[b];
    const TensorId input = walked.block->input, output = walked.block->output;
    if (b == 0 && input >= 0) make(b, input);
    play(b, walked.events.forward);
    if (b < last) hand_over(b, output, walked.saved, b + 1, stage_->blocks[b + 1]->block->input);
    if (b == last && output >= 0 && !walked.saved[index(output)]) drop(slot(b, output));
  }

  // Runs the backward of the block before `end`, and of those that are recomputed together with it. The last
  // block's recompute belongs to its backward. Returns the first of these blocks.
  std::size_t backward(std::size_t end, TensorEvents BlockEvents::*whole, TensorEvents BlockEvents::*rest) {
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
    return first;
  }

  void send_gradient() {
    const WalkedBlock& front = *stage_->blocks.front();
    const TensorId sent = front.block->input_gradient;
    if (sent >= 0 && !front.kept[index(sent)]) drop(slot(0, sent));
  }

  void let_go(ByMicrobatch::iterator microbatch) {
    for (Handle& handle : microbatch->second) drop(handle);
    microbatches_.erase(microbatch);
  }

  void receive_gradient(std::size_t b) {
    const TensorId gradient = stage_->blocks[b]->block->output_gradient;
    if (gradient < 0) return;
    if (b + 1 == stage_->blocks.size()) return make(b, gradient);
    const WalkedBlock& next = *stage_->blocks[b + 1];
    hand_over(b + 1, next.block->input_gradient, next.kept, b, gradient);
  }

  MemoryHabits habits_;
  std::vector<WalkedBlock> blocks_;
  std::vector<WalkedStage> stages_;
  CachingAllocator allocator_;
  ByMicrobatch microbatches_;
  ByMicrobatch leaving_;  // copies still on their way to the host, where the tensors have returned
  const WalkedStage* stage_ = nullptr;  // of the op that runs
  Slots* slots_ = nullptr;              // of its microbatch
  std::array<Buffer, 2> buffers_;
  std::vector<bool> exchanged_;  // by handle
  std::int64_t launched_ = 0, waited_ = 0, last_exchange_ = 0;
};

}  // namespace

MemoryHabits memory_habits(const Plan& plan) {
  using AfterPass = AllocatorUse::AfterPass;
  const AllocatorUse& use = traits(plan).allocator;
  MemoryHabits habits = {.records_streams = use.records_streams,
                         .waits_before_forward = use.waits_before_forward,
                         .gather_buffers = use.gather_buffers};
  habits.waits_after_pass = (use.after_pass == AfterPass::waits_unsharded && plan.zero == 0) ||
                            (use.after_pass == AfterPass::waits_in_pipelines && plan.pp > 1);
  habits.shares_queue = use.shares_queue_with_tp && plan.tp > 1;
  if (plan.launch_blocking) habits.records_streams = false;  // the GPU never lags behind the host
  if (plan.one_queue) habits.shares_queue = true;
  return habits;
}

ReservedBytes replay_allocations(const RankOps& ops, const RankMemory& memory, const Plan& plan,
                                 const Work& work, double capacity_bytes, std::int64_t microbatches) {
  constexpr int kIterations = 4;  // all published runs settle in the first; this ends one that never does
  Replay replay(plan, work, capacity_bytes);
  const std::vector<LateBlocks> late = late_blocks(memory, plan, work);
  std::int64_t before = -1;
  for (int i = 0; i < kIterations && replay.allocator().most_reserved_bytes() != before; ++i) {
    before = replay.allocator().most_reserved_bytes();
    replay.iteration(ops, late, microbatches);
  }
  return {static_cast<double>(replay.allocator().most_requested_bytes()),
          static_cast<double>(replay.allocator().most_reserved_bytes())};
}

double reserved_bytes(const RankOps& ops, const RankMemory& memory, const Plan& plan, const Work& work,
                      double capacity_bytes, std::int64_t microbatches) {
  const double replayed =
      memory.activations_bytes + memory.logits_bytes + memory.passing_gradients_bytes + memory.late_bytes;
  const double steady = memory.peak_bytes - replayed;
  const ReservedBytes bytes =
      replay_allocations(ops, memory, plan, work, capacity_bytes - steady, microbatches);
  return steady + std::max(bytes.reserved, replayed);
}

}  // namespace rehearse
