#include "memory/lifetimes.h"

#include "memory/block_walk.h"

namespace rehearse {

namespace {

// Bytes of one repeat of a block. `again`: tensors that its backward reads after a recompute that ran alone.
struct BlockBytes {
  bool has_loss = false;
  LiveBytes saved, kept, again, input, output_gradient;
  LiveBytes forward, backward, backward_input, backward_weight;
  LiveBytes recompute, backward_of_recomputed, backward_input_of_recomputed;
};

bool is_loss(const Kernel& kernel) {
  const auto* type = std::get_if<Pointwise>(&kernel.what);
  if (type == nullptr) return false;
  const Pointwise stream = stream_of(*type);
  return stream == Pointwise::cross_entropy || stream == Pointwise::cross_entropy_backward;
}

class Sums {
 public:
  explicit Sums(const Block& block) : block_(block), walk_(block), of_loss_(of_loss(block)) {}

  BlockBytes bytes(bool in_groups) const {
    const BlockEvents events = walk_.events(in_groups);
    const LiveBytes before = sum(walk_.and_output_gradient(walk_.before_recompute()));
    const LiveBytes between = sum(walk_.and_output_gradient(walk_.again()));
    return {.has_loss = has_loss(block_),
            .saved = sum(walk_.saved()),
            .kept = sum(walk_.kept()),
            .again = sum(walk_.again()),
            .input = sum(walk_.input()),
            .output_gradient = sum(walk_.and_output_gradient(Marks(block_.tensors.size()))),
            .forward = peak(sum(walk_.input()), events.forward),
            .backward = peak(before, events.backward),
            .backward_input = peak(before, events.backward_input),
            .backward_weight = peak(sum(walk_.kept()), events.backward_weight),
            .recompute = peak(sum(walk_.before_recompute()), events.recompute),
            .backward_of_recomputed = peak(between, events.backward_of_recomputed),
            .backward_input_of_recomputed = peak(between, events.backward_input_of_recomputed)};
  }

 private:
  LiveBytes of(std::size_t tensor) const {
    const double bytes = walk_.counted()[tensor] ? block_.tensors[tensor].bytes() : 0;
    return {bytes, of_loss_[tensor] ? bytes : 0};
  }

  LiveBytes sum(const Marks& marks) const {
    LiveBytes live;
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (marks[i]) live = live + of(i);
    return live;
  }

  LiveBytes peak(LiveBytes now, const TensorEvents& events) const {
    LiveBytes most = now;
    for (const TensorEvent& event : events) {
      const LiveBytes bytes = of(static_cast<std::size_t>(event.tensor));
      if (event.change == TensorChange::comes) now = now + bytes;
      if (event.change == TensorChange::goes) now = now - bytes;
      if (now.total > most.total) most = now;
    }
    return most;
  }

  const Block& block_;
  BlockWalk walk_;
  std::vector<bool> of_loss_;
};

void raise(LiveBytes& most, const LiveBytes& candidate) {
  if (candidate.total > most.total) most = candidate;
}

// Layers that are recomputed together: one repeated block, or a block and those that join it.
struct Group {
  std::vector<const BlockBytes*> blocks;
  double repeats = 1;
};

std::vector<Group> groups_of(const Work& work, const std::vector<Repeated>& parts,
                             const std::vector<BlockBytes>& blocks) {
  std::vector<Group> groups;
  for (const Repeated& part : parts) {
    const auto block = static_cast<std::size_t>(part.block);
    if (work.blocks[block].joins_previous) {
      groups.back().blocks.insert(groups.back().blocks.end(), static_cast<std::size_t>(part.repeats),
                                  &blocks[block]);
    } else {
      groups.push_back({{&blocks[block]}, static_cast<double>(part.repeats)});
    }
  }
  return groups;
}

LiveBytes sum_of(const Group& group, LiveBytes BlockBytes::*what) {
  LiveBytes sum;
  for (const BlockBytes* block : group.blocks) sum = sum + block->*what;
  return sum;
}

// The blocks of a group are recomputed one after the other. The last one runs its backward (`whole`) right
// after its recompute. The backwards of the others (`rest`) follow, last first. `kept`: bytes that stay for W
// after each backward.
LiveBytes group_peak(const Group& group, LiveBytes BlockBytes::*whole, LiveBytes BlockBytes::*rest,
                     LiveBytes BlockBytes::*kept) {
  const auto& blocks = group.blocks;
  LiveBytes peak, again, waiting = sum_of(group, &BlockBytes::saved), through;
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    waiting = waiting - blocks[i]->saved;
    raise(peak, again + blocks[i]->recompute + waiting);
    again = again + blocks[i]->again;
  }
  raise(peak, again + blocks.back()->*whole);
  for (std::size_t i = blocks.size() - 1; i-- > 0;) {
    if (kept != nullptr) through = through + blocks[i + 1]->*kept;
    again = again - blocks[i]->again;
    raise(peak, again + blocks[i]->*rest + through);
  }
  return peak;
}

void list_blocks(StageBytes& stage, const Group& group) {
  const BlockBytes& block = *group.blocks.front();
  stage.blocks.push_back({group.repeats, block.has_loss, block.saved, block.forward, block.backward,
                          block.input, block.output_gradient});
}

StageBytes stage_of(const std::vector<Group>& groups) {
  StageBytes stage;
  for (const Group& group : groups) {
    if (group.blocks.size() == 1) list_blocks(stage, group);
    const LiveBytes saved = sum_of(group, &BlockBytes::saved);
    LiveBytes before = stage.saved + saved * (group.repeats - 1);
    for (const BlockBytes* block : group.blocks) {
      raise(stage.forward, before + block->forward);
      before = before + block->saved;
    }
    stage.saved = stage.saved + saved * group.repeats;
    stage.kept = stage.kept + sum_of(group, &BlockBytes::kept) * group.repeats;
  }
  LiveBytes saved = stage.saved, kept = stage.kept, done;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const LiveBytes own = sum_of(*group, &BlockBytes::saved), own_kept = sum_of(*group, &BlockBytes::kept);
    raise(stage.backward,
          saved - own +
              group_peak(*group, &BlockBytes::backward, &BlockBytes::backward_of_recomputed, nullptr));
    LiveBytes waiting = kept;
    for (auto block = group->blocks.rbegin(); block != group->blocks.rend(); ++block) {
      waiting = waiting - (*block)->kept;
      raise(stage.backward_weight, waiting + (*block)->backward_weight);
    }
    const LiveBytes peak = group_peak(*group, &BlockBytes::backward_input,
                                      &BlockBytes::backward_input_of_recomputed, &BlockBytes::kept);
    raise(stage.backward_input, saved - own + done + peak);
    saved = saved - own * group->repeats;
    kept = kept - own_kept * group->repeats;
    raise(stage.backward_input, saved + done + own_kept * (group->repeats - 1) + peak);
    done = done + own_kept * group->repeats;
  }
  return stage;
}

// Goes through the blocks one by one, forward from the first or backward from the last.
class Turns {
 public:
  Turns(const std::vector<StageBytes::Blocks>& blocks, bool back) : blocks_(blocks), back_(back) {}
  bool over() const { return passed_ == blocks_.size(); }
  // The tensor that the previous block leaves for the next one.
  LiveBytes handed_on(LiveBytes StageBytes::Blocks::*what) const {
    return over() || (passed_ == 0 && repeats_ == 0) ? LiveBytes{} : next().*what;
  }
  const StageBytes::Blocks& next() const { return blocks_[back_ ? blocks_.size() - 1 - passed_ : passed_]; }
  bool at_loss() const { return !over() && next().loss; }
  void pass() {
    if (++repeats_ < next().repeats) return;
    repeats_ = 0;
    ++passed_;
  }

 private:
  const std::vector<StageBytes::Blocks>& blocks_;
  bool back_;
  std::size_t passed_ = 0;
  double repeats_ = 0;
};

}  // namespace

LiveBytes beside_each_other(const StageBytes& forward, const StageBytes& backward) {
  LiveBytes most, ahead, behind = backward.saved;
  Turns there(forward.blocks, false), back(backward.blocks, true);
  const auto go_back = [&] {
    behind = behind - back.next().saved;
    raise(most, ahead + there.handed_on(&StageBytes::Blocks::input) + behind + back.next().backward);
    back.pass();
  };
  const auto go_on = [&] {
    raise(most, ahead + behind + back.handed_on(&StageBytes::Blocks::output_gradient) + there.next().forward);
    ahead = ahead + there.next().saved;
    there.pass();
  };
  while (back.at_loss()) go_back();
  while (!back.over() && !there.over() && !there.at_loss()) go_on(), go_back();
  while (!back.over()) go_back();
  while (!there.over()) go_on();
  return most;
}

PassMemory pass_memory(const Op& op, const Op* backward, const std::vector<StageBytes>& stages) {
  const StageBytes& stage = stages[op.stage];
  if (backward != nullptr) {
    const StageBytes& other = stages[backward->stage];
    return {other.saved, beside_each_other(stage, other), stage.saved};
  }
  switch (op.kind) {
    case OpKind::forward:
      return {{}, stage.forward, stage.saved};
    case OpKind::backward:
      return {stage.saved, stage.backward, {}};
    case OpKind::backward_input:
      return {stage.saved, stage.backward_input, stage.kept};
    case OpKind::backward_weight:
      return {stage.kept, stage.backward_weight, {}};
    default:
      return {};
  }
}

bool has_loss(const Block& block) {
  return std::any_of(block.forward.begin(), block.forward.end(), is_loss);
}

std::vector<bool> of_loss(const Block& block) {
  std::vector<bool> marks(block.tensors.size());
  const auto mark = [&](const std::vector<TensorId>& ids) {
    for (const TensorId id : ids) marks[static_cast<std::size_t>(id)] = true;
  };
  for (const auto* kernels : {&block.forward, &block.backward_input}) {
    for (const Kernel& kernel : *kernels) {
      if (!is_loss(kernel)) continue;
      mark(kernel.reads);
      mark(kernel.writes);
    }
  }
  return marks;
}

std::vector<StageBytes> stage_bytes(const Work& work) {
  std::vector<BlockBytes> blocks;
  const bool in_groups = recomputes_in_groups(work);
  for (const Block& block : work.blocks) blocks.push_back(Sums(block).bytes(in_groups));
  std::vector<StageBytes> stages;
  for (const auto& parts : work.parts) stages.push_back(stage_of(groups_of(work, parts, blocks)));
  return stages;
}

std::vector<double> offloaded_bytes(const Work& work) {
  std::vector<double> bytes;
  for (const StageBytes& stage : stage_bytes(work)) bytes.push_back(stage.saved.others());
  return bytes;
}

}  // namespace rehearse
