#include "plan/kernel_types.h"

#include <array>

#include "plan/fp8.h"
#include "plan/work.h"

namespace rehearse {

namespace {

enum Ours : std::uint8_t { kNone = 0, kTimed = 1, kExecuted = 2, kBoth = 3, kImported = 4 };

struct TypeRow {
  Pointwise type;
  const char* name;
  Pointwise stream;
  Ours ours;
};

using P = Pointwise;

// In the order of the types, with the ones that have a kernel of ours. Others stream as "add" or "permute"
// do, or belong to a library.
constexpr std::array kRows = {
    TypeRow{P::norm, "norm", P::norm, kBoth},
    TypeRow{P::norm_backward, "norm_backward", P::norm_backward, kBoth},
    TypeRow{P::norm_weight_gradient, "norm_weight_gradient", P::norm_backward, kBoth},
    TypeRow{P::layer_norm, "layer_norm", P::norm, kBoth},
    TypeRow{P::layer_norm_backward, "layer_norm_backward", P::norm_backward, kBoth},
    TypeRow{P::layer_norm_weight_gradient, "layer_norm_weight_gradient", P::norm_backward, kBoth},
    TypeRow{P::plain_norm, "plain_norm", P::norm, kNone},
    TypeRow{P::plain_norm_backward, "plain_norm_backward", P::norm_backward, kNone},
    TypeRow{P::rotary, "rotary", P::rotary, kBoth},
    TypeRow{P::rotary_backward, "rotary_backward", P::rotary, kBoth},
    TypeRow{P::latent_rotary, "latent_rotary", P::rotary, kBoth},
    TypeRow{P::latent_rotary_backward, "latent_rotary_backward", P::rotary, kBoth},
    TypeRow{P::activation, "activation", P::activation, kBoth},
    TypeRow{P::activation_backward, "activation_backward", P::activation_backward, kBoth},
    TypeRow{P::varying_activation, "varying_activation", P::varying_activation, kBoth},
    TypeRow{P::varying_activation_backward, "varying_activation_backward", P::varying_activation_backward,
            kBoth},
    TypeRow{P::dropout, "dropout", P::dropout, kBoth},
    TypeRow{P::dropout_backward, "dropout_backward", P::dropout, kBoth},
    TypeRow{P::score_dropout, "score_dropout", P::dropout, kBoth},
    TypeRow{P::score_dropout_backward, "score_dropout_backward", P::dropout, kBoth},
    TypeRow{P::add, "add", P::add, kBoth},
    TypeRow{P::add_partials, "add_partials", P::add, kTimed},
    TypeRow{P::ring_merge, "ring_merge", P::add, kBoth},
    TypeRow{P::ring_gradient_sum, "ring_gradient_sum", P::add, kBoth},
    TypeRow{P::softmax, "softmax", P::softmax, kBoth},
    TypeRow{P::softmax_backward, "softmax_backward", P::softmax_backward, kBoth},
    TypeRow{P::causal_softmax, "causal_softmax", P::causal_softmax, kBoth},
    TypeRow{P::causal_softmax_backward, "causal_softmax_backward", P::causal_softmax_backward, kBoth},
    TypeRow{P::top_k, "top_k", P::softmax, kBoth},
    TypeRow{P::top_k_backward, "top_k_backward", P::softmax_backward, kBoth},
    TypeRow{P::embedding, "embedding", P::embedding, kBoth},
    TypeRow{P::embedding_backward, "embedding_backward", P::embedding_backward, kBoth},
    TypeRow{P::positions, "positions", P::embedding, kBoth},
    TypeRow{P::positions_backward, "positions_backward", P::embedding_backward, kBoth},
    TypeRow{P::permute, "permute", P::permute, kBoth},
    TypeRow{P::unpermute, "unpermute", P::permute, kBoth},
    TypeRow{P::copy_visitors, "copy_visitors", P::permute, kNone},
    TypeRow{P::sum_visitors, "sum_visitors", P::permute, kNone},
    TypeRow{P::spread_rows, "spread_rows", P::spread_rows, kNone},
    TypeRow{P::collect_rows, "collect_rows", P::collect_rows, kNone},
    TypeRow{P::scatter_add, "scatter_add", P::scatter_add, kNone},
    TypeRow{P::reorder, "reorder", P::reorder, kNone},
    TypeRow{P::rows_by_expert, "rows_by_expert", P::reorder, kBoth},
    TypeRow{P::rows_by_source, "rows_by_source", P::reorder, kBoth},
    TypeRow{P::repeat_heads, "repeat_heads", P::reorder, kBoth},
    TypeRow{P::sum_repeated_heads, "sum_repeated_heads", P::reorder, kBoth},
    TypeRow{P::order_by_sequence, "order_by_sequence", P::reorder, kBoth},
    TypeRow{P::order_by_rank, "order_by_rank", P::reorder, kBoth},
    TypeRow{P::join_columns, "join_columns", P::reorder, kBoth},
    TypeRow{P::part_columns, "part_columns", P::reorder, kBoth},
    TypeRow{P::join_shards, "join_shards", P::reorder, kBoth},
    TypeRow{P::own_shard, "own_shard", P::reorder, kBoth},
    TypeRow{P::ring_pack, "ring_pack", P::reorder, kBoth},
    TypeRow{P::ring_join, "ring_join", P::reorder, kBoth},
    TypeRow{P::rearrange, "rearrange", P::rearrange, kExecuted},
    TypeRow{P::cross_entropy, "cross_entropy", P::cross_entropy, kNone},
    TypeRow{P::cross_entropy_backward, "cross_entropy_backward", P::cross_entropy_backward, kNone},
    TypeRow{P::widen_logits, "widen_logits", P::cross_entropy, kBoth},
    TypeRow{P::narrow_logits, "narrow_logits", P::cross_entropy_backward, kBoth},
    TypeRow{P::loss_maximum, "loss_maximum", P::cross_entropy, kBoth},
    TypeRow{P::loss_shift, "loss_shift", P::cross_entropy, kBoth},
    TypeRow{P::loss_exponentials, "loss_exponentials", P::cross_entropy, kBoth},
    TypeRow{P::loss_sum, "loss_sum", P::cross_entropy, kBoth},
    TypeRow{P::loss, "loss", P::cross_entropy, kBoth},
    TypeRow{P::loss_backward, "loss_backward", P::cross_entropy_backward, kBoth},
    TypeRow{P::loss_part, "loss_part", P::cross_entropy_backward, kExecuted},
    TypeRow{P::log_softmax, "log_softmax", P::cross_entropy, kBoth},
    TypeRow{P::log_softmax_backward, "log_softmax_backward", P::cross_entropy_backward, kBoth},
    TypeRow{P::likelihood_backward, "likelihood_backward", P::cross_entropy_backward, kBoth},
    TypeRow{P::token_loss, "token_loss", P::cross_entropy, kBoth},
    TypeRow{P::token_loss_backward, "token_loss_backward", P::cross_entropy_backward, kBoth},
    TypeRow{P::bias_gradient, "bias_gradient", P::bias_gradient, kBoth},
    TypeRow{P::sinks_gradient, "sinks_gradient", P::bias_gradient, kNone},
    TypeRow{P::count_choices, "count_choices", P::bias_gradient, kBoth},
    TypeRow{P::accumulate_sums, "accumulate_sums", P::bias_gradient, kBoth},
    TypeRow{P::convolution, "convolution", P::convolution, kBoth},
    TypeRow{P::convolution_backward, "convolution_backward", P::convolution_backward, kBoth},
    TypeRow{P::adam, "adam", P::adam, kBoth},
    TypeRow{P::quantize, "quantise", P::quantize, kTimed},
    TypeRow{P::quantize_blocks, "quantise_blocks", P::quantize_blocks, kTimed},
    TypeRow{P::quantize_heads, "quantise_heads", P::quantize, kNone},
    TypeRow{P::quantize_head_blocks, "quantise_head_blocks", P::quantize_blocks, kNone},
    TypeRow{P::quantize_fp4, "quantise_fp4", P::quantize_fp4, kImported},
    TypeRow{P::quantize_fp4_at_random, "quantise_fp4_at_random", P::quantize_fp4_at_random, kImported},
    TypeRow{P::find_maximum, "find_maximum", P::quantize, kTimed},
    TypeRow{P::find_row_maxima, "find_row_maxima", P::quantize, kNone},
    TypeRow{P::find_maxima_fp4, "find_maxima_fp4", P::quantize_fp4, kImported},
    TypeRow{P::square_sum, "square_sum", P::square_sum, kBoth},
    TypeRow{P::clip_scale, "clip_scale", P::clip_scale, kBoth},
    TypeRow{P::eager, "eager", P::eager, kNone},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].type) != i) return false;
  return kRows.back().type == Pointwise::eager;
}
static_assert(in_order());

const TypeRow& row_of(Pointwise type) {
  return kRows.at(static_cast<std::size_t>(type));
}

KernelSupport support(std::string type, std::string stream, Ours ours) {
  return {std::move(type),      std::move(stream),       true,
          (ours & kTimed) != 0, (ours & kExecuted) != 0, (ours & kImported) != 0};
}

constexpr std::array kOps = {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                             CollectiveOp::all_to_all, CollectiveOp::broadcast,  CollectiveOp::send_receive,
                             CollectiveOp::dispatch,   CollectiveOp::combine};

KernelSupport support_of_attention(bool backward, bool quantized, bool sinks) {
  return support(std::string("attention") + (backward ? "_backward" : "") + (quantized ? " fp8" : "") +
                     (sinks ? " with sinks" : ""),
                 "", quantized || sinks ? kTimed : kBoth);
}

KernelSupport support_of_scan(bool backward) {
  return support(backward ? "scan_backward" : "scan", backward ? "scan_backward" : "scan", kBoth);
}

}  // namespace

std::string to_string(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return "all_reduce";
    case CollectiveOp::all_gather:
      return "all_gather";
    case CollectiveOp::reduce_scatter:
      return "reduce_scatter";
    case CollectiveOp::all_to_all:
      return "all_to_all";
    case CollectiveOp::broadcast:
      return "broadcast";
    case CollectiveOp::send_receive:
      return "send_receive";
    case CollectiveOp::dispatch:
      return "dispatch";
    case CollectiveOp::combine:
      break;
  }
  return "combine";
}

Pointwise stream_of(Pointwise type) {
  return row_of(type).stream;
}

std::string to_string(Pointwise type) {
  return row_of(type).name;
}

KernelSupport support_of(Pointwise type) {
  const TypeRow& row = row_of(type);
  return support(row.name, to_string(row.stream), row.ours);
}

// Dispatch and combine run in libraries. Only owners of whole parameters broadcast, and these plans are not
// executed.
KernelSupport support_of(CollectiveOp op) {
  return support(to_string(op), "",
                 is_row_exchange(op)             ? kNone
                 : op == CollectiveOp::broadcast ? kTimed
                                                 : kBoth);
}

KernelSupport support_of_gemm(Precision operands) {
  const Ours ours = operands == Precision::fp4 ? kImported : operands == Precision::fp8 ? kTimed : kBoth;
  return support("gemm " + to_string(operands), "", ours);
}

KernelSupport support_of(const Block& block, const Kernel& kernel, Precision precision) {
  if (const auto* type = std::get_if<Pointwise>(&kernel.what)) return support_of(*type);
  if (const auto* collective = std::get_if<Collective>(&kernel.what)) return support_of(collective->op);
  if (const auto* scan = std::get_if<Scan>(&kernel.what)) return support_of_scan(scan->backward);
  if (const auto* attention = std::get_if<Attention>(&kernel.what))
    return support_of_attention(attention->backward, attention->operands != AttentionOperands::activations,
                                kernel.reads.has(Slot::sinks));
  return support_of_gemm(precision_of(block, kernel, precision));
}

std::vector<KernelSupport> all_kernel_support() {
  std::vector<KernelSupport> all;
  for (const Precision precision : kPrecisions) all.push_back(support_of_gemm(precision));
  for (const bool backward : {false, true}) {
    all.push_back(support_of_attention(backward, false, false));
    all.push_back(support_of_attention(backward, true, false));
  }
  all.push_back(support_of_attention(false, false, true));
  for (const bool backward : {false, true}) all.push_back(support_of_scan(backward));
  for (const TypeRow& row : kRows) all.push_back(support_of(row.type));
  for (const CollectiveOp op : kOps) all.push_back(support_of(op));
  return all;
}

}  // namespace rehearse
