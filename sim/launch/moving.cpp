// The pointwise kernels that other files of this folder launch: kernels that move rows, and those of the
// loss, of state spaces and of rings.
#include "launch/views.h"

namespace rehearse {

namespace {

Calls of_experts(const Launch& launch, Pointwise type) {
  switch (type) {
    case Pointwise::top_k:
      return top_k_calls(launch);
    case Pointwise::top_k_backward:
      return top_k_backward_calls(launch);
    case Pointwise::permute:
      return permute_calls(launch);
    case Pointwise::unpermute:
      return unpermute_calls(launch);
    case Pointwise::rows_by_expert:
    case Pointwise::rows_by_source:
      return sort_calls(launch, type == Pointwise::rows_by_expert);
    default:  // of the loss, or of types that have no kernel of ours (plan/kernel_types.h)
      return loss_calls(launch, type);
  }
}

}  // namespace

Calls moving_calls(const Launch& launch, Pointwise type) {
  switch (type) {
    case Pointwise::repeat_heads:
      return repeat_calls(launch);
    case Pointwise::sum_repeated_heads:
      return sum_repeated_calls(launch);
    case Pointwise::order_by_sequence:
    case Pointwise::order_by_rank:
      return order_calls(launch, type == Pointwise::order_by_sequence);
    case Pointwise::join_columns:
      return join_columns_calls(launch);
    case Pointwise::part_columns:
      return part_columns_calls(launch);
    case Pointwise::join_shards:
      return join_shards_calls(launch);
    case Pointwise::own_shard:
      return own_shard_calls(launch);
    case Pointwise::ring_pack:
      return ring_pack_calls(launch);
    case Pointwise::ring_join:
      return ring_join_calls(launch);
    case Pointwise::ring_merge:
      return ring_merge_calls(launch);
    case Pointwise::ring_gradient_sum:
      return ring_gradient_sum_calls(launch);
    case Pointwise::convolution:
      return convolution_calls(launch);
    case Pointwise::convolution_backward:
      return convolution_backward_calls(launch);
    case Pointwise::accumulate_sums:
      return added_sums_calls(launch);
    default:
      return of_experts(launch, type);
  }
}

}  // namespace rehearse
