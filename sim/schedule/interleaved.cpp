// Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
// section 2.2. Warm-up lengths are Megatron-LM's (core/pipeline_parallel/schedules.py); its earlier releases
// ran all forwards first when there is a single group of microbatches, which holds more activations for no
// gain.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/orders.h"

namespace rehearse {

namespace {

// A virtual microbatch is a pass of one microbatch through one chunk; number k of a rank takes pp
// microbatches through chunk 0, then the same pp through chunk 1, and so on. Backwards take the chunks in
// reverse.
Op virtual_microbatch(OpKind kind, int k, int rank, int pp, int vpp) {
  const int group = pp * vpp;
  const int chunk = k % group / pp;
  const int stage = (kind == OpKind::forward ? chunk : vpp - 1 - chunk) * pp + rank;
  return make_op(kind, stage, k / group * pp + k % pp);
}

void require_full_groups(int pp, int microbatches) {
  if (microbatches % pp == 0) return;
  const int below = microbatches / pp * pp;
  throw InputError(Violation{.file = {},
                             .pointer = {},
                             .rule = "interleaved-1f1b needs microbatches that are a multiple of pp",
                             .values = fmt::format("microbatches = {}, pp = {}", microbatches, pp),
                             .nearest = below > 0 ? fmt::format("{} or {} microbatches", below, below + pp)
                                                  : fmt::format("{} microbatches", pp)});
}

}  // namespace

Schedule interleaved_1f1b(int pp, int vpp, int microbatches) {
  if (vpp == 1) return one_f_one_b(pp, microbatches);
  require_full_groups(pp, microbatches);
  Schedule schedule{pp, pp * vpp, microbatches, {}};
  const int total = microbatches * vpp;
  for (int rank = 0; rank < pp; ++rank) {
    RankOps& ops = schedule.ranks.emplace_back();
    const auto add = [&](OpKind kind, int k) { ops.add(virtual_microbatch(kind, k, rank, pp, vpp)); };
    const int warm_up = std::min((pp - rank - 1) * 2 + (vpp - 1) * pp, total);
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
