// In which order are the activations of a rank's microbatches allocated, offloaded, reloaded and released?
//
// The peak in bytes (memory.h), the allocator's replay (reserved.h) and the list of live microbatches read
// this one stream of events.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/lifetimes.h"
#include "schedule/schedule.h"

namespace rehearse {

struct ActivationEvent {
  enum class Kind : std::uint8_t {
    reloads,    // the copy from the host to the GPU runs
    offloaded,  // the copy at the host counts as complete: an op waits for it
    begins,     // the first part of a pass
    ends,       // its last part
    ran_before  // a part of a pass that ran beside another, already listed as `backward` there
  };
  Kind kind;
  std::size_t op;  // index in the rank's list: of the copy, or of the pass
  const Op* backward =
      nullptr;  // of begins and ends: the backward pass that takes turns with this forward pass
};

// By op of a rank: the backward whose kernels take turns with those of this forward (pair_passes); 0: none.
// Empty where no passes take turns, or where activations are offloaded between passes.
std::vector<std::size_t> backwards_beside(const RankOps& ops);

// Calls visit(event) for each event of stages below `stages`, in the order of the rank's compute stream.
template <typename Visit>
void walk_activations(const RankOps& ops, std::size_t stages, Visit visit) {
  using Kind = ActivationEvent::Kind;
  const std::vector<std::size_t> beside = backwards_beside(ops);
  const Op *forward = nullptr, *backward = nullptr;  // the last two that ran beside each other
  const auto same_pass = [](const Op& a, const Op* b) {
    return b != nullptr && a.kind == b->kind && a.stage == b->stage && a.microbatch == b->microbatch;
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.stage >= stages) continue;
    if (op.kind == OpKind::reload) visit(ActivationEvent{Kind::reloads, i});
    if (!is_compute(op.kind)) continue;
    for (const std::int32_t wait : ops.waits(op))
      if (const auto copy = static_cast<std::size_t>(wait); ops[copy].kind == OpKind::offload)
        visit(ActivationEvent{Kind::offloaded, copy});
    if (!beside.empty() && beside[i] > 0) {
      forward = &op;
      backward = &ops[beside[i]];
      visit(ActivationEvent{Kind::begins, i, backward});
      visit(ActivationEvent{Kind::ends, i, backward});
    } else if (same_pass(op, forward) || same_pass(op, backward)) {
      visit(ActivationEvent{Kind::ran_before, i});
    } else {
      if (op.part == 0) visit(ActivationEvent{Kind::begins, i});
      if (op.part + 1 == op.parts) visit(ActivationEvent{Kind::ends, i});
    }
  }
}

// Calls at(op index, bytes live between ops, bytes live now, op has ended) as each op begins and ends.
template <typename At>
void walk_live_bytes(const RankOps& ops, const std::vector<StageBytes>& stages, At at) {
  using Kind = ActivationEvent::Kind;
  // All saved tensors are offloaded, except those of the loss.
  const auto sent = [&](const Op& op) { return LiveBytes{stages[op.stage].saved.others(), 0}; };
  LiveBytes live;
  walk_activations(ops, stages.size(), [&](const ActivationEvent& event) {
    const Op& op = ops[event.op];
    switch (event.kind) {
      case Kind::reloads:
        live = live + sent(op);
        return at(event.op, live, live, false);
      case Kind::offloaded:
        live = live - sent(op);
        return at(event.op, live, live, true);
      case Kind::ran_before:
        return at(event.op, live, live, op.part + 1 == op.parts);
      case Kind::begins:
      case Kind::ends:
        break;
    }
    const PassMemory pass = pass_memory(op, event.backward, stages);
    if (event.kind == Kind::begins) return at(event.op, live, live - pass.before + pass.peak, false);
    live = live - pass.before + pass.after;
    at(event.op, live, live, true);
  });
}

}  // namespace rehearse
