// Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
// section 2.2. Warm-up lengths are Megatron-LM's (core/pipeline_parallel/schedules.py). Its earlier releases
// ran all forwards first if there is a single group of microbatches; this holds more activations for no gain.
// With vpp > 1, InputError unless pp <= group <= microbatches and the last group is full or at least pp.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/orders.h"

namespace rehearse {

namespace {

// A virtual microbatch is a pass of one microbatch through one chunk. A rank takes a group of microbatches
// through chunk 0, then the same group through chunk 1, and so on. Backwards take the chunks in reverse.
struct VirtualMicrobatch {
  int chunk = 0;
  int microbatch = 0;
};

std::vector<VirtualMicrobatch> virtual_microbatches(int vpp, int microbatches, int group) {
  std::vector<VirtualMicrobatch> order;
  order.reserve(static_cast<std::size_t>(vpp) * static_cast<std::size_t>(microbatches));
  for (int first = 0; first < microbatches; first += group)
    for (int chunk = 0; chunk < vpp; ++chunk)
      for (int i = first; i < std::min(first + group, microbatches); ++i) order.push_back({chunk, i});
  return order;
}

// The same rules as broken_rules(), for callers without a plan.
void require_groups(int pp, int microbatches, int group) {
  const int last = microbatches % group;
  if (group >= pp && group <= microbatches && (last == 0 || last >= pp)) return;
  const int below = microbatches / pp * pp;
  throw InputError(Violation{
      .file = {},
      .pointer = {},
      .rule = "interleaved-1f1b needs groups of pp microbatches or more, the last one too",
      .values = fmt::format("microbatches = {}, pp = {}, group = {}", microbatches, pp, group),
      .nearest = below > 0 ? fmt::format("{} or {} microbatches in groups of {}", below, below + pp, pp)
                           : fmt::format("{} microbatches", pp)});
}

}  // namespace

Schedule orders::interleaved(const OrderShape& shape) {
  const int pp = shape.pp, microbatches = shape.microbatches, vpp = shape.vpp;
  if (vpp == 1) return one_f_one_b(shape);
  const int group = shape.group == 0 ? pp : shape.group;
  require_groups(pp, microbatches, group);
  Schedule schedule{pp, pp * vpp, microbatches, {}};
  const std::vector<VirtualMicrobatch> order = virtual_microbatches(vpp, microbatches, group);
  const int total = static_cast<int>(order.size());
  for (int rank = 0; rank < pp; ++rank) {
    RankOps& ops = schedule.ranks.emplace_back();
    const auto add = [&](OpKind kind, int k) {
      const auto [chunk, microbatch] = order[static_cast<std::size_t>(k)];
      const int turn = kind == OpKind::forward ? chunk : vpp - 1 - chunk;
      ops.add(make_op(kind, turn * pp + rank, microbatch));
    };
    const int warm_up = std::min((pp - rank - 1) * 2 + (vpp - 1) * group + shape.ahead, total);
    for (int k = 0; k < warm_up; ++k) add(OpKind::forward, k);
    for (int k = warm_up; k < total; ++k) {
      add(OpKind::forward, k);
      add(OpKind::backward, k - warm_up);
    }
    for (int k = total - warm_up; k < total; ++k) add(OpKind::backward, k);
  }
  return schedule;
}

}  // namespace rehearse
