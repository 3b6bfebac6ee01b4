#include "memory/block_walk.h"

#include <algorithm>

namespace rehearse {

namespace {

void mark(Marks& marks, const std::vector<TensorId>& ids) {
  for (const TensorId id : ids)
    if (id >= 0) marks[static_cast<std::size_t>(id)] = true;
}

bool is_in_place(const Kernel& kernel) {
  const auto* collective = std::get_if<Collective>(&kernel.what);
  return collective != nullptr && collective->op == CollectiveOp::all_reduce;
}

std::vector<const Kernel*> pointers(const std::vector<Kernel>& kernels) {
  std::vector<const Kernel*> list;
  for (const Kernel& kernel : kernels) list.push_back(&kernel);
  return list;
}

template <typename T>
std::vector<T> joined(std::vector<T> list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace

BlockWalk::BlockWalk(const Block& block, const WalkOptions& options)
    : block_(block),
      collective_launches_(options.collective),
      counted_(block.tensors.size()),
      of_parameters_(block.tensors.size()) {
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    const TensorRole role = block.tensors[i].role;
    counted_[i] = role == TensorRole::input || role == TensorRole::activation || role == TensorRole::gradient;
  }
  for (const Kernel& kernel : block.backward_weight) {
    for (const TensorId id : kernel.writes) {
      const auto i = static_cast<std::size_t>(id);
      if (block.tensors[i].role != TensorRole::gradient) continue;
      of_parameters_[i] = true;
      counted_[i] = options.of_parameters;
    }
  }
}

Marks BlockWalk::marked(const std::vector<TensorId>& ids) const {
  Marks marks(block_.tensors.size());
  mark(marks, ids);
  return marks;
}

Marks BlockWalk::read_before_written(const std::vector<Kernel>& kernels) const {
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

Marks BlockWalk::before_recompute() const {
  Marks marks = saved();
  if (block_.joins_previous) mark(marks, {block_.input});
  return marks;
}

Marks BlockWalk::again() const {
  Marks there = before_recompute();
  for (const Kernel& kernel : block_.recompute) mark(there, kernel.writes);
  const Marks input = read_before_written(block_.backward_input);
  const Marks weight = read_before_written(block_.backward_weight);
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = there[i] && (input[i] || weight[i]);
  return there;
}

Marks BlockWalk::and_output_gradient(Marks marks) const {
  mark(marks, {block_.output_gradient});
  return marks;
}

// Each weight gradient runs as soon as its inputs are there.
BlockWalk::Kernels BlockWalk::autograd_order() const {
  Kernels order;
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

// Launches on the stream of the compute kernels; for a collective see WalkOptions::collective. Autograd adds
// the gradient of a parameter to earlier ones by a separate kernel.
std::int32_t BlockWalk::launches(const Kernel& kernel) const {
  if (std::holds_alternative<Collective>(kernel.what)) return collective_launches_;
  std::int32_t launches = 1;
  for (const TensorId id : kernel.writes) launches += of_parameters_[static_cast<std::size_t>(id)];
  return launches;
}

TensorEvents BlockWalk::walk(const Kernels& order, const Marks& before, const Marks& after) const {
  constexpr std::size_t kStays = static_cast<std::size_t>(-1);
  std::vector<std::size_t> last_use(block_.tensors.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k)
    for (const auto* ids : {&order[k]->reads, &order[k]->writes})
      for (const TensorId id : *ids) last_use[static_cast<std::size_t>(id)] = k;
  for (std::size_t i = 0; i < after.size(); ++i)
    if (after[i] || of_parameters_[i]) last_use[i] = kStays;

  TensorEvents events;
  Marks live = before;
  std::int32_t launched = 0;
  const auto add = [&](TensorId id, TensorChange change) {
    const auto i = static_cast<std::size_t>(id);
    const bool lives = change != TensorChange::goes;
    if (counted_[i] && (live[i] != lives || change == TensorChange::exchanged))
      events.push_back({id, change, launched});
    live[i] = lives;
  };
  const auto free = [&](const std::vector<TensorId>& ids, std::size_t k) {
    for (const TensorId id : ids)
      if (last_use[static_cast<std::size_t>(id)] == k) add(id, TensorChange::goes);
  };
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Kernel& kernel = *order[k];
    launched += launches(kernel);
    if (is_in_place(kernel)) free(kernel.reads, k);
    for (const TensorId id : kernel.writes) add(id, TensorChange::comes);
    if (std::holds_alternative<Collective>(kernel.what)) {
      for (const auto* ids : {&kernel.reads, &kernel.writes})
        for (const TensorId id : *ids)
          if (live[static_cast<std::size_t>(id)]) add(id, TensorChange::exchanged);
    }
    free(kernel.reads, k);
    free(kernel.writes, k);
  }
  return events;
}

BlockEvents BlockWalk::events(bool in_groups) const {
  Marks output = saved(), input = kept();
  mark(output, {block_.output});
  mark(input, {block_.input_gradient});
  const Kernels recompute = pointers(block_.recompute), inputs = pointers(block_.backward_input),
                autograd = autograd_order();
  const Marks before = and_output_gradient(before_recompute()), gradient = marked({block_.input_gradient});
  BlockEvents events{.forward = walk(pointers(block_.forward), marked({block_.input}), output),
                     .backward = walk(joined(recompute, autograd), before, gradient),
                     .backward_input = walk(joined(recompute, inputs), before, input),
                     .backward_weight = walk(pointers(block_.backward_weight), kept(), marked({}))};
  if (!in_groups) return events;
  const Marks between = and_output_gradient(again());
  events.recompute = walk(recompute, before_recompute(), again());
  events.backward_of_recomputed = walk(autograd, between, gradient);
  events.backward_input_of_recomputed = walk(inputs, between, input);
  return events;
}

bool recomputes_in_groups(const Work& work) {
  return std::ranges::any_of(work.blocks, &Block::joins_previous);
}

}  // namespace rehearse
