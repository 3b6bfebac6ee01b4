#include "result/lifetimes.h"

namespace rehearse {

namespace {

using Marks = std::vector<bool>;  // by tensor
using Kernels = std::vector<const Kernel*>;

// The bytes of one repeat of a block. `again`: what its backward reads once its recompute has run.
struct BlockBytes {
  LiveBytes saved, kept, again;
  LiveBytes forward, backward, backward_input, backward_weight;
};

void mark(Marks& marks, const std::vector<TensorId>& ids) {
  for (const TensorId id : ids)
    if (id >= 0) marks[static_cast<std::size_t>(id)] = true;
}

bool is_in_place(const Kernel& kernel) {
  const auto* collective = std::get_if<Collective>(&kernel.what);
  return collective != nullptr && collective->op == CollectiveOp::all_reduce;
}

bool is_loss(const Kernel& kernel) {
  const auto* pointwise = std::get_if<Pointwise>(&kernel.what);
  return pointwise != nullptr &&
         (*pointwise == Pointwise::cross_entropy || *pointwise == Pointwise::cross_entropy_backward);
}

class BlockWalk {
 public:
  explicit BlockWalk(const Block& block)
      : block_(block), counted_(block.tensors.size()), of_loss_(of_loss(block)) {
    for (std::size_t i = 0; i < counted_.size(); ++i) {
      const TensorRole role = block.tensors[i].role;
      counted_[i] =
          role == TensorRole::input || role == TensorRole::activation || role == TensorRole::gradient;
    }
    for (const Kernel& kernel : block.backward_weight)  // parameter gradients: in the accumulator
      for (const TensorId id : kernel.writes)
        if (block.tensors[static_cast<std::size_t>(id)].role == TensorRole::gradient)
          counted_[static_cast<std::size_t>(id)] = false;
  }

  BlockBytes bytes() const {
    const Marks saved = marked(block_.saved);
    const Marks kept = read_before_written(block_.backward_weight);
    Marks before_backward = saved;
    mark(before_backward, {block_.output_gradient});
    if (block_.joins_previous) mark(before_backward, {block_.input});
    Marks after_forward = saved;
    mark(after_forward, {block_.output});
    Marks after_input = kept;
    mark(after_input, {block_.input_gradient});

    BlockBytes bytes;
    bytes.saved = sum(saved);
    bytes.kept = sum(kept);
    bytes.again = sum(read_after_recompute(before_backward));
    bytes.forward = peak(pointers(block_.forward), marked({block_.input}), after_forward);
    Kernels inputs = pointers(block_.recompute);
    append(inputs, block_.backward_input);
    bytes.backward_input = peak(inputs, before_backward, after_input);
    bytes.backward_weight = peak(pointers(block_.backward_weight), kept, marked({}));
    bytes.backward = peak(autograd_order(), before_backward, marked({block_.input_gradient}));
    return bytes;
  }

 private:
  static Kernels pointers(const std::vector<Kernel>& kernels) {
    Kernels list;
    append(list, kernels);
    return list;
  }

  static void append(Kernels& list, const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels) list.push_back(&kernel);
  }

  Marks marked(const std::vector<TensorId>& ids) const {
    Marks marks(block_.tensors.size());
    mark(marks, ids);
    return marks;
  }

  Marks read_before_written(const std::vector<Kernel>& kernels) const {
    Marks written(block_.tensors.size()), read(block_.tensors.size());
    for (const Kernel& kernel : kernels) {
      for (const TensorId id : kernel.reads) {
        const auto i = static_cast<std::size_t>(id);
        if (counted_[i] && !written[i]) read[i] = true;
      }
      mark(written, kernel.writes);
    }
    return read;
  }

  Marks read_after_recompute(const Marks& before) const {
    Marks there = before;
    for (const Kernel& kernel : block_.recompute) mark(there, kernel.writes);
    if (block_.output_gradient >= 0) there[static_cast<std::size_t>(block_.output_gradient)] = false;
    const Marks input = read_before_written(block_.backward_input);
    const Marks weight = read_before_written(block_.backward_weight);
    for (std::size_t i = 0; i < there.size(); ++i) there[i] = there[i] && (input[i] || weight[i]);
    return there;
  }

  // Each weight gradient as soon as what it reads is there.
  Kernels autograd_order() const {
    Kernels order = pointers(block_.recompute);
    Kernels waiting = pointers(block_.backward_weight);
    Marks missing(block_.tensors.size());
    for (const auto* kernels : {&block_.backward_input, &block_.backward_weight})
      for (const Kernel& kernel : *kernels) mark(missing, kernel.writes);
    const auto run = [&](const Kernel* kernel) {
      for (const TensorId id : kernel->writes) missing[static_cast<std::size_t>(id)] = false;
      order.push_back(kernel);
    };
    const auto run_ready = [&] {
      std::erase_if(waiting, [&](const Kernel* kernel) {
        const bool ready = std::none_of(kernel->reads.begin(), kernel->reads.end(),
                                        [&](TensorId id) { return missing[static_cast<std::size_t>(id)]; });
        if (ready) run(kernel);
        return ready;
      });
    };
    run_ready();
    for (const Kernel& kernel : block_.backward_input) {
      run(&kernel);
      run_ready();
    }
    return order;
  }

  void add(LiveBytes& live, std::size_t tensor, double sign) const {
    const double bytes = counted_[tensor] ? sign * block_.tensors[tensor].bytes() : 0;
    live.total += bytes;
    if (of_loss_[tensor]) live.logits += bytes;
  }

  LiveBytes sum(const Marks& marks) const {
    LiveBytes live;
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (marks[i]) add(live, i, 1);
    return live;
  }

  // The most live bytes while `order` runs, from `before` on; what is in `after` stays.
  LiveBytes peak(const Kernels& order, const Marks& before, const Marks& after) const {
    constexpr std::size_t kStays = static_cast<std::size_t>(-1);
    std::vector<std::size_t> last_use(block_.tensors.size(), 0);
    for (std::size_t k = 0; k < order.size(); ++k)
      for (const auto* ids : {&order[k]->reads, &order[k]->writes})
        for (const TensorId id : *ids) last_use[static_cast<std::size_t>(id)] = k;
    for (std::size_t i = 0; i < after.size(); ++i)
      if (after[i]) last_use[i] = kStays;

    Marks live = before;
    LiveBytes now = sum(before), most = now;
    const auto free = [&](const std::vector<TensorId>& ids, std::size_t k) {
      for (const TensorId id : ids) {
        const auto i = static_cast<std::size_t>(id);
        if (!live[i] || last_use[i] != k) continue;
        live[i] = false;
        add(now, i, -1);
      }
    };
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (is_in_place(*order[k])) free(order[k]->reads, k);
      for (const TensorId id : order[k]->writes) {
        const auto i = static_cast<std::size_t>(id);
        if (!live[i]) add(now, i, 1);
        live[i] = true;
      }
      if (now.total > most.total) most = now;
      free(order[k]->reads, k);
      free(order[k]->writes, k);
    }
    return most;
  }

  const Block& block_;
  Marks counted_;
  Marks of_loss_;
};

void raise(LiveBytes& most, const LiveBytes& candidate) {
  if (candidate.total > most.total) most = candidate;
}

// Layers that are recomputed together: one block, repeated, or a block and those that join it.
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

// The backward of a group begins at its last block, when all the others have been recomputed.
LiveBytes group_peak(const Group& group, LiveBytes BlockBytes::*what) {
  LiveBytes peak = group.blocks.back()->*what;
  for (std::size_t i = 0; i + 1 < group.blocks.size(); ++i) peak = peak + group.blocks[i]->again;
  return peak;
}

StageBytes stage_of(const std::vector<Group>& groups) {
  StageBytes stage;
  for (const Group& group : groups) {
    const LiveBytes saved = sum_of(group, &BlockBytes::saved);
    const LiveBytes before_last = stage.saved + saved * (group.repeats - 1);
    for (const BlockBytes* block : group.blocks) raise(stage.forward, before_last + block->forward);
    stage.saved = stage.saved + saved * group.repeats;
    stage.kept = stage.kept + sum_of(group, &BlockBytes::kept) * group.repeats;
  }
  LiveBytes saved = stage.saved, kept = stage.kept, done;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const LiveBytes own = sum_of(*group, &BlockBytes::saved), own_kept = sum_of(*group, &BlockBytes::kept);
    raise(stage.backward, saved - own + group_peak(*group, &BlockBytes::backward));
    raise(stage.backward_weight, kept - own_kept + group->blocks.back()->backward_weight);
    const LiveBytes peak = group_peak(*group, &BlockBytes::backward_input);
    raise(stage.backward_input, saved - own + done + peak);
    saved = saved - own * group->repeats;
    kept = kept - own_kept * group->repeats;
    raise(stage.backward_input, saved + done + own_kept * (group->repeats - 1) + peak);
    done = done + own_kept * group->repeats;
  }
  return stage;
}

}  // namespace

std::vector<bool> of_loss(const Block& block) {
  Marks marks(block.tensors.size());
  for (const auto* kernels : {&block.forward, &block.backward_input}) {
    for (const Kernel& kernel : *kernels) {
      if (!is_loss(kernel)) continue;
      mark(marks, kernel.reads);
      mark(marks, kernel.writes);
    }
  }
  return marks;
}

std::vector<StageBytes> stage_bytes(const Work& work) {
  std::vector<BlockBytes> blocks;
  for (const Block& block : work.blocks) blocks.push_back(BlockWalk(block).bytes());
  std::vector<StageBytes> stages;
  for (const auto& parts : work.parts) stages.push_back(stage_of(groups_of(work, parts, blocks)));
  return stages;
}

}  // namespace rehearse
