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

// Rows to the order of their experts or back: reads and writes {rows[, weights]} first.
template <typename Move>
Move move_rows(const Launch& launch, std::int64_t rows_in, std::int64_t rows_out, std::int64_t copies,
               const kernels::Tensor& place) {
  Move move;
  move.copies = copies;
  move.place = place;
  move.input = launch.read(0, rows_in);
  move.output = launch.write(0, rows_out);
  if (launch.kernel.writes.size() > 1) {
    move.weights = launch.whole(launch.kernel.reads[1]);
    move.output_weights = launch.whole(launch.kernel.writes[1]);
  }
  return move;
}

// Between the token order and the order of experts, by the choices.
Calls by_choice(const Launch& launch) {
  const Experts& experts = *launch.bound.model.experts;
  const std::int64_t tokens = launch.bound.shape.rows, chosen = tokens * experts.per_token;
  const bool back = launch.ends_with("_backward");
  const bool spreads = launch.kernel.name.starts_with("permute") != back;
  const TensorId choices = launch.kernel.reads.back();
  const kernels::Tensor place = places(launch, chosen);
  const TensorId moved = spreads ? launch.kernel.writes[0] : launch.kernel.reads[0];
  const std::int64_t sent = launch.elements(moved) / launch.bound.shape.latent;
  Calls calls = {kernels::SortChoices{launch.integers(choices, tokens), place, experts.count}};
  if (spreads) {
    calls.push_back(move_rows<SpreadRows>(launch, tokens, sent, experts.per_token, place));
  } else {
    calls.push_back(move_rows<CollectRows>(launch, sent, tokens, experts.per_token, place));
  }
  return calls;
}

// What came from one rank after the other, by local expert: blocks change places.
Calls by_source(const Launch& launch) {
  const Plan& plan = launch.bound.plan;
  const std::int64_t sources = std::int64_t{plan.ep} * plan.etp;
  const std::int64_t experts = launch.bound.model.experts->count / plan.ep;
  const std::int64_t rows = launch.elements(launch.kernel.reads[0]) / launch.bound.shape.latent;
  const std::int64_t block = rows / (sources * experts);
  const bool back = launch.ends_with("_backward");
  const bool to_experts = launch.kernel.name.starts_with("sort_by_expert") != back;
  const kernels::Tensor place = places(launch, sources * experts * block);
  return {
      kernels::TransposeBlocks{place, to_experts ? sources : experts, to_experts ? experts : sources, block},
      move_rows<SpreadRows>(launch, rows, rows, 1, place)};
}

// Where the rows between the GEMMs stand: of a context-parallel rank as its list of positions says.
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

std::int64_t rows_sorted(const Block& block, std::int64_t width) {
  double most = 0;
  for (const Kernel& kernel : block.forward) {
    const auto* kind = std::get_if<Pointwise>(&kernel.what);
    if (kind == nullptr || (*kind != Pointwise::permute && *kind != Pointwise::reorder)) continue;
    if (kernel.name.starts_with("ring") || kernel.name.ends_with("_order")) continue;  // which sort nothing
    for (const auto* ids : {&kernel.reads, &kernel.writes})
      for (const TensorId id : *ids)
        most = std::max(most, block.tensors[static_cast<std::size_t>(id)].elements);
  }
  return static_cast<std::int64_t>(most) / width;
}

Calls choice_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.rows;
  if (launch.named("top_k_backward"))
    return {kernels::TopKBackward{launch.read(0, rows), launch.read(1, rows),
                                  launch.integers(launch.kernel.reads[2], rows), launch.write(0, rows)}};
  kernels::TopK call{
      launch.read(0, rows), {}, launch.write(0, rows), launch.integers(launch.kernel.writes[1], rows)};
  if (launch.reads_more_than(1)) call.bias = launch.whole(launch.kernel.reads[1]);
  if (launch.bound.experts_in_turn) number_tokens(launch, call);
  return {call};
}

Calls permute_calls(const Launch& launch) {
  return launch.kernel.name.starts_with("sort") ? by_source(launch) : by_choice(launch);
}

}  // namespace rehearse
