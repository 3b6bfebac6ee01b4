#include "model/count_mixers.h"

namespace rehearse {

std::int64_t mamba_mixer(const Model& model, const StateSpace& space) {
  const std::int64_t projected = 2 * space.inner() + space.maps() + space.heads;
  return model.hidden * projected + (space.inner() + space.maps()) * (space.convolution + 1) +
         3 * space.heads + space.inner() + space.inner() * model.hidden;
}

namespace {

// Queries, keys, values, their gate, and of each head a step and a decay; a norm over a head.
std::int64_t delta_rule(const Model& model, const Recurrence& of) {
  const std::int64_t mixed = 2 * of.keys() + of.values();
  return model.hidden * (mixed + of.values() + 2 * of.value_heads) + mixed * of.convolution +
         2 * of.value_heads + of.value_head_dim + of.values() * model.hidden;
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
    case RecurrenceKind::lightning:
      return lightning(model, of);
    case RecurrenceKind::selective_scan:
      return selective_scan(model, of);
    case RecurrenceKind::short_convolution:
      return short_convolution(model, of);
  }
  return 0;
}

std::int64_t indexer_size(const Model& model, const Indexer& indexer) {
  return model.latent->q_rank * indexer.heads * indexer.head_dim +
         model.hidden * (indexer.head_dim + indexer.heads) + 2 * indexer.head_dim;
}

}  // namespace rehearse
