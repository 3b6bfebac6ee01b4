#include <algorithm>

#include "kernels/device.h"
#include "launch/views.h"

namespace rehearse {

namespace {

using kernels::CollectRows;
using kernels::SpreadRows;

kernels::Tensor places(const Launch& launch, std::int64_t rows) {
  kernels::Tensor place = launch.bound.rows_of_choices;
  if (place.columns < rows)
    throw kernels::DeviceError("a sparse layer needs one scratch integer a row that it sends");
  place.columns = place.stride = rows;
  return place;
}

// Moves rows to the order of their experts or back, with their weights where these move too.
template <typename Move>
Move move_rows(const Launch& launch, std::int64_t rows_in, std::int64_t rows_out, std::int64_t copies,
               const kernels::Tensor& place) {
  Move move;
  move.copies = copies;
  move.place = place;
  move.input = launch.read(0, rows_in);
  move.output = launch.write(0, rows_out);
  if (launch.kernel.writes.has(Slot::row_weights)) {
    move.weights = launch.whole_read(Slot::row_weights);
    move.output_weights = launch.whole_write(Slot::row_weights);
  }
  return move;
}

// Moves rows between the token order and the order of experts. `sent` has as many rows as are sent.
template <typename Move>
Calls by_choice(const Launch& launch, TensorId sent, bool spreads) {
  const Experts& experts = *launch.bound.model.experts;
  const std::int64_t tokens = launch.bound.shape.rows;
  const kernels::Tensor place = places(launch, tokens * experts.per_token);
  const std::int64_t rows = launch.elements(sent) / launch.bound.shape.latent;
  const TensorId choices = launch.kernel.reads.in(Slot::choices);
  return {
      kernels::SortChoices{launch.integers(choices, tokens), place, experts.count},
      move_rows<Move>(launch, spreads ? tokens : rows, spreads ? rows : tokens, experts.per_token, place)};
}

// Places of the rows between the GEMMs; on a context-parallel rank, from its list of positions.
void number_tokens(const Launch& launch, kernels::TopK& call) {
  const std::int64_t first = launch.bound.first_position;
  call.in_turn = true;
  call.tokens = launch.tokens();
  if (call.tokens.positions.given()) {
    call.tokens.positions = call.tokens.positions.slice(first, call.tokens.length - first);
  } else {
    call.first_position = first;
  }
}

}  // namespace

bool sorts_rows(const Kernel& kernel) {
  return is_one_of(kernel, Pointwise::permute, Pointwise::unpermute, Pointwise::rows_by_expert,
                   Pointwise::rows_by_source);
}

std::int64_t rows_sorted(const Block& block, std::int64_t width) {
  double most = 0;
  for (const Kernel& kernel : block.forward) {
    if (!sorts_rows(kernel)) continue;
    for (const auto* ids : {&kernel.reads, &kernel.writes})
      for (const TensorId id : *ids)
        most = std::max(most, block.tensors[static_cast<std::size_t>(id)].elements);
  }
  return static_cast<std::int64_t>(most) / width;
}

Calls top_k_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.rows;
  kernels::TopK call{launch.read(0, rows),
                     {},
                     launch.write(0, rows),
                     launch.integers(launch.kernel.writes.in(Slot::choices), rows)};
  call.bias = launch.whole_read(Slot::bias);
  if (launch.bound.experts_in_turn) number_tokens(launch, call);
  return {call};
}

Calls top_k_backward_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.rows;
  return {kernels::TopKBackward{launch.read(0, rows), launch.read(1, rows),
                                launch.integers(launch.kernel.reads.in(Slot::choices), rows),
                                launch.write(0, rows)}};
}

Calls permute_calls(const Launch& launch) {
  return by_choice<SpreadRows>(launch, launch.kernel.writes[0], true);
}

Calls unpermute_calls(const Launch& launch) {
  return by_choice<CollectRows>(launch, launch.kernel.reads[0], false);
}

// Swaps blocks: rows in the order of source ranks are sorted by local expert, or back.
Calls sort_calls(const Launch& launch, bool by_expert) {
  const Plan& plan = launch.bound.plan;
  const std::int64_t sources = std::int64_t{plan.ep} * plan.etp;
  const std::int64_t experts = launch.bound.model.experts->count / plan.ep;
  const std::int64_t rows = launch.elements(launch.kernel.reads[0]) / launch.bound.shape.latent;
  const std::int64_t block = rows / (sources * experts);
  const kernels::Tensor place = places(launch, sources * experts * block);
  return {
      kernels::TransposeBlocks{place, by_expert ? sources : experts, by_expert ? experts : sources, block},
      move_rows<SpreadRows>(launch, rows, rows, 1, place)};
}

}  // namespace rehearse
