#include "model/count_mixers.h"

namespace rehearse {

std::int64_t mamba_mixer(const Model& model, const StateSpace& space) {
  const std::int64_t projected = 2 * space.inner() + space.maps() + space.heads;
  return model.hidden * projected + (space.inner() + space.maps()) * (space.convolution + 1) +
         3 * space.heads + (space.norm ? space.inner() : 0) + space.inner() * model.hidden;
}

namespace {

// Queries, keys, values and their gate; for each head a step and a decay; a norm over a head.
std::int64_t delta_rule(const Model& model, const Recurrence& of) {
  const std::int64_t mixed = 2 * of.keys() + of.values();
  return model.hidden * (mixed + of.values() + 2 * of.value_heads) + mixed * of.convolution +
         2 * of.value_heads + of.value_head_dim + of.values() * model.hidden;
}

// Kimi Linear's KimiDeltaAttention. The decays are two matrices of low rank, and so is the gate unless its
// rank is full.
std::int64_t kimi_delta(const Model& model, const Recurrence& of) {
  const std::int64_t mixed = 2 * of.keys() + of.values(), rank = of.key_head_dim;
  const std::int64_t gate =
      of.full_rank_gate ? model.hidden * of.values() : rank * (model.hidden + of.values());
  return model.hidden * (mixed + of.value_heads) + mixed * of.convolution +
         rank * (model.hidden + of.keys()) + gate + of.value_heads + of.keys() + of.value_head_dim +
         of.values() * model.hidden;
}

std::int64_t lightning(const Model& model, const Recurrence& of) {
  return model.hidden * (2 * of.keys() + 2 * of.values()) + of.values() + of.values() * model.hidden;
}

// The convolution and the map of the steps have biases.
std::int64_t selective_scan(const Model& model, const Recurrence& of) {
  const std::int64_t inner = of.values(), state = of.key_head_dim, maps = of.step_rank + 2 * state;
  return 2 * model.hidden * inner + inner * (of.convolution + 1) + inner * maps + inner * (of.step_rank + 1) +
         inner * state + inner + (of.inner_norms ? maps : 0) + inner * model.hidden;
}

// Lfm2ShortConv: two gates and the input, the convolution, the output.
std::int64_t short_convolution(const Model& model, const Recurrence& of) {
  return 3 * model.hidden * of.values() + of.values() * of.convolution + of.values() * model.hidden;
}

}  // namespace

std::int64_t recurrent_mixer(const Model& model, const Recurrence& of) {
  switch (of.kind) {
    case RecurrenceKind::gated_delta_rule:
      return delta_rule(model, of);
    case RecurrenceKind::kimi_delta:
      return kimi_delta(model, of);
    case RecurrenceKind::lightning:
      return lightning(model, of);
    case RecurrenceKind::selective_scan:
      return selective_scan(model, of);
    case RecurrenceKind::short_convolution:
      return short_convolution(model, of);
  }
  return 0;
}

namespace {

// DeepSeek-V4's Compressor: values and their weights, of windows that overlap where keys are chosen; a bias
// of each place in a window; a norm.
std::int64_t compressor(const Model& model, bool overlaps, std::int64_t width) {
  const std::int64_t channels = (overlaps ? 2 : 1) * width;
  return 2 * model.hidden * channels + model.compression * channels + width;
}

}  // namespace

std::int64_t compressed_attention(const Model& model, const CompressedAttention& of) {
  const std::int64_t heads = model.heads * model.head_dim;
  std::int64_t size = of.q_rank * (model.hidden + 1 + heads) + model.hidden * model.head_dim +
                      model.head_dim + heads * of.group_rank + of.groups * of.group_rank * model.hidden +
                      (model.attention_sinks ? model.heads : 0);
  const bool chooses = model.compression == of.sparse;
  if (model.compression > 0) size += compressor(model, chooses, model.head_dim);
  if (chooses)
    size += of.q_rank * of.index_heads * of.index_head_dim + model.hidden * of.index_heads +
            compressor(model, true, of.index_head_dim);
  return size;
}

std::int64_t indexer_size(const Model& model, const Indexer& indexer) {
  if (indexer.block > 0)  // MiniMaxM3: queries and keys from the rows, each with a norm
    return model.hidden * (indexer.heads + 1) * indexer.head_dim + 2 * indexer.head_dim;
  return model.latent->q_rank * indexer.heads * indexer.head_dim +
         model.hidden * (indexer.head_dim + indexer.heads) + 2 * indexer.head_dim;
}

}  // namespace rehearse
