#include <algorithm>
#include <cmath>

#include "kernels/device.h"
#include "launch/views.h"

namespace rehearse {

namespace {

using namespace kernels;  // every call's name

ActivationKind activation_of(const Model& model) {
  if (model.gated_mlp) return ActivationKind::swiglu;
  return model.squared_relu ? ActivationKind::squared_relu : ActivationKind::gelu;
}

// Vectors of a row that are normalized one by one: groups of a state space, or heads. The weight of groups
// has a number for each column. Heads share the weight of one vector, and are next to others in a matrix.
NormShape norm_shape(const Launch& launch, TensorId input, TensorId weight, bool centred) {
  const std::int64_t width = launch.kernel.width, groups = launch.elements(weight) / width;
  const TensorPlace& place = launch.bound.places[static_cast<std::size_t>(input)];
  NormShape shape;
  shape.centred = centred;
  shape.groups = groups > 1 ? groups : place.has_own_matrix() ? 1 : place.columns / width;
  return shape;
}

// Rows of a tensor whose parts are normalized.
kernels::Tensor vectors(const Launch& launch, TensorId id, std::int64_t groups) {
  return launch.rows(id, launch.elements(id) / (launch.kernel.width * groups));
}

Calls norm(const Launch& launch, bool centred) {
  const TensorId input = launch.kernel.reads[0], weight = launch.kernel.reads.in(Slot::weight);
  kernels::Norm call;
  call.shape = norm_shape(launch, input, weight, centred);
  call.input = vectors(launch, input, call.shape.groups);
  call.weight = launch.whole(weight);
  call.bias = launch.whole_read(Slot::bias);
  call.output = vectors(launch, launch.kernel.writes[0], call.shape.groups);
  return {call};
}

Calls norm_backward(const Launch& launch, bool centred) {
  const TensorId input = launch.kernel.reads.in(Slot::input), weight = launch.kernel.reads.in(Slot::weight);
  const NormShape shape = norm_shape(launch, input, weight, centred);
  const auto view = [&](TensorId id) { return vectors(launch, id, shape.groups); };
  return {NormInputGradient{shape, view(launch.kernel.reads[0]), view(input), launch.whole(weight),
                            view(launch.kernel.writes[0])}};
}

Calls norm_weight_gradient(const Launch& launch, bool centred) {
  const TensorId input = launch.kernel.reads.in(Slot::input), weight = launch.kernel.writes.in(Slot::weight);
  const NormShape shape = norm_shape(launch, input, weight, centred);
  const auto view = [&](TensorId id) { return vectors(launch, id, shape.groups); };
  return {NormWeightGradient{shape, view(launch.kernel.reads[0]), view(input), launch.whole(weight),
                             launch.whole_write(Slot::bias)}};
}

// A gated input is twice as wide.
Calls activation(const Launch& launch) {
  const std::int64_t rows = launch.elements(launch.kernel.writes[0]) / launch.kernel.width;
  Activation call{activation_of(launch.bound.model),
                  launch.with_neighbour(launch.kernel.reads, 0, rows),
                  {},
                  launch.write(0, rows)};
  call.weights = launch.whole_read(Slot::row_weights);
  return {call};
}

Calls activation_backward(const Launch& launch) {
  const std::int64_t rows = launch.elements(launch.kernel.reads[0]) / launch.kernel.width;
  ActivationBackward call;
  call.kind = activation_of(launch.bound.model);
  call.output_gradient = launch.read(0, rows);
  call.input = launch.with_neighbour(launch.kernel.reads.all_in(Slot::input), 0, rows);
  call.input_gradient = launch.with_neighbour(launch.kernel.writes, 0, rows);
  if (launch.kernel.reads.has(Slot::row_weights)) {
    call.weights = launch.whole_read(Slot::row_weights);
    call.weights_gradient = launch.whole_write(Slot::row_weights);
    call.weights_gradient.type = Type::fp32;
  }
  return {call};
}

// Rows of a residual stream; a bias has one number for each column.
std::int64_t stream_rows(const Launch& launch, TensorId id) {
  return launch.elements(id) / launch.bound.shape.hidden;
}

// Random numbers for rows between the GEMMs, counted by position and then by sequence of the global batch. A
// context-parallel rank has a chunk from either end of the sequence. With sequence parallelism, a rank's rows
// are all in one chunk.
Draws draws_of_rows(const BoundBlock& bound) {
  const Shape& shape = bound.shape;
  const std::int64_t own = shape.batch * shape.hidden, all = bound.plan.global_batch * shape.hidden;
  const auto from = [&](std::int64_t position) {
    return Draws{position * all + bound.first_sequence * shape.hidden, own, all};
  };
  const std::int64_t first = bound.first_position;
  if (shape.cp == 1) return from(first);
  const std::int64_t chunk = shape.seq / 2, near = bound.context_rank, far = 2 * shape.cp - 1 - near;
  if (shape.sequence_parallel)
    return from(first < chunk ? near * chunk + first : far * chunk + first - chunk);
  Draws both = from(near * chunk);
  both.turn = chunk * own;
  both.skip = (far - near - 1) * chunk * all;
  return both;
}

// Random numbers for probabilities, which are split by head within each sequence.
Draws draws_of_scores(const BoundBlock& bound) {
  const Shape& shape = bound.shape;
  const std::int64_t own = shape.heads * shape.seq * shape.seq, all = bound.plan.tp * own;
  return {bound.first_sequence * all + bound.tensor_rank * own, own, all};
}

// Rows of probabilities.
std::int64_t score_rows(const Launch& launch, TensorId id) {
  return launch.elements(id) / launch.bound.shape.seq;
}

Calls dropout(const Launch& launch, std::int64_t rows, const Draws& draws) {
  Dropout call;
  call.rate = launch.bound.dropout_rate;
  call.seed = launch.bound.seed;
  call.input = launch.rows(launch.kernel.reads.in(Slot::operand), rows);
  call.residual = launch.read_in(Slot::residual, rows);
  call.bias = launch.whole_read(Slot::bias);
  call.output = launch.write(0, rows);
  call.mask = launch.write_in(Slot::mask, rows);
  call.draws = draws;
  return {call};
}

Calls dropout_backward(const Launch& launch, std::int64_t rows) {
  return {DropoutBackward{launch.read(0, rows), launch.read_in(Slot::mask, rows), launch.write(0, rows),
                          launch.bound.dropout_rate}};
}

Calls add(const Launch& launch) {
  const std::int64_t rows = stream_rows(launch, launch.kernel.writes[0]);
  Add call;
  call.output = launch.write(0, rows);
  call.bias = launch.whole_read(Slot::bias);
  std::size_t inputs = 0;
  for (std::size_t i = 0; i < launch.kernel.reads.size(); ++i)
    if (launch.kernel.reads.slot(i) != Slot::bias) call.inputs.at(inputs++) = launch.read(i, rows);
  return {call};
}

Calls softmax(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t rows = launch.elements(launch.kernel.writes[0]) / shape.seq;
  const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  return {Softmax{launch.read(0, rows), launch.write(0, rows), scale, true, shape.seq, 1}};
}

Calls softmax_backward(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t rows = launch.elements(launch.kernel.writes[0]) / shape.seq;
  const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  return {SoftmaxBackward{launch.read(0, rows), launch.read_in(Slot::output, rows), launch.write(0, rows),
                          scale}};
}

kernels::Tensor table(const Launch& launch, TensorId id) {
  return launch.rows(id, launch.elements(id) / launch.bound.shape.hidden);
}

// Places of the rows between the GEMMs, and the table of positions. A context-parallel rank has the whole
// table, other ranks have it from the position of their first row on.
struct Placed {
  kernels::Tokens tokens;
  kernels::Tensor table;
};
Placed placed(const Launch& launch, TensorId table) {
  const std::int64_t width = launch.bound.shape.hidden, first = launch.bound.first_position;
  kernels::Tokens tokens = launch.tokens();
  if (!tokens.positions.given())
    return {tokens, launch.part(table, first * width, launch.elements(table) / width - first, width)};
  tokens.positions = tokens.positions.slice(first, tokens.length - first);
  return {tokens, launch.part(table, 0, launch.elements(table) / width, width)};
}

Calls embedding(const Launch& launch) {
  const std::int64_t rows = stream_rows(launch, launch.kernel.writes[0]);
  return {Embedding{launch.whole(launch.kernel.reads[0]), table(launch, launch.kernel.reads[1]),
                    launch.write(0, rows), launch.bound.first_vocabulary_row}};
}

Calls embedding_backward(const Launch& launch) {
  const std::int64_t rows = stream_rows(launch, launch.kernel.reads[0]);
  return {EmbeddingBackward{launch.read(0, rows), launch.whole(launch.kernel.reads[1]),
                            table(launch, launch.kernel.writes[0]), launch.bound.first_vocabulary_row}};
}

Calls positions(const Launch& launch) {
  const std::int64_t rows = stream_rows(launch, launch.kernel.writes[0]);
  const Placed places = placed(launch, launch.kernel.reads[1]);
  return {kernels::Positions{places.tokens, launch.read(0, rows), places.table, launch.write(0, rows)}};
}

Calls positions_backward(const Launch& launch) {
  const std::int64_t rows = stream_rows(launch, launch.kernel.reads[0]);
  const Placed places = placed(launch, launch.kernel.writes[0]);
  return {PositionsBackward{places.tokens, launch.read(0, rows), places.table}};
}

// Number of rows of a quantized tensor. It is that of the matrix that the tensor shares, or that of the GEMM
// that reads the result `to`. Tensors that ranks gather first, or whose maximum alone is computed, have rows
// of the residual stream where possible.
std::int64_t quantized_rows(const Launch& launch, TensorId from, TensorId to, bool by_columns) {
  const TensorPlace& place = launch.bound.places[static_cast<std::size_t>(from)];
  if (!place.has_own_matrix()) return place.rows;
  const Gemm* product = product_of(launch.bound.block, to);
  if (product != nullptr)
    return by_columns ? product->k * product->batch : launch.elements(from) / product->k;
  const std::int64_t elements = launch.elements(from), width = launch.bound.shape.hidden;
  return elements % width == 0 ? elements / width : 1;
}

// Sets `call.input` to tensors side by side, with the rows of quantized_rows(). Returns the rows.
template <typename Quantizing>
std::int64_t take_input(const Launch& launch, bool by_columns, Quantizing& call) {
  const std::vector<TensorId> from = launch.kernel.reads.all_in(Slot::operand);
  const std::int64_t rows = quantized_rows(launch, from.front(), launch.kernel.writes[0], by_columns);
  std::int64_t elements = 0;
  for (const TensorId id : from) elements += launch.elements(id);
  call.input = launch.rows(from.front(), rows);
  call.input.columns = elements / rows;
  return rows;
}

// Quantizes to rows, to columns or to both.
Calls quantize(const Launch& launch) {
  const TensorId by_rows = launch.kernel.writes.in(Slot::operand),
                 by_columns = launch.kernel.writes.in(Slot::columns);
  kernels::Quantize call;
  call.scale = launch.whole_read(Slot::scale);
  const std::int64_t rows = take_input(launch, by_rows < 0, call), width = call.input.columns;
  if (by_columns >= 0) call.columns = launch.part(by_columns, 0, width, rows);
  if (by_rows >= 0) call.rows = launch.part(by_rows, 0, rows, width);
  return {call};
}

Calls find_maximum(const Launch& launch) {
  kernels::Quantize call;
  take_input(launch, false, call);
  call.maximum = launch.whole(launch.kernel.writes[0]);
  return {call};
}

// Sums over the columns that are side by side.
Calls bias_gradient(const Launch& launch) {
  const TensorId bias = launch.kernel.writes[0];
  std::int64_t elements = 0;
  for (const TensorId id : launch.kernel.reads) elements += launch.elements(id);
  kernels::Tensor gradient = launch.rows(launch.kernel.reads[0], elements / launch.elements(bias));
  gradient.columns = launch.elements(bias);
  return {BiasGradient{gradient, launch.whole(bias)}};
}

// Experts that tokens visit in turn all have the same number of tokens.
Calls count_choices(const Launch& launch) {
  if (launch.bound.experts_in_turn) return {};
  return {CountChoices{launch.integers(launch.kernel.reads[0], launch.bound.shape.rows),
                       launch.whole(launch.kernel.writes[0])}};
}

}  // namespace

Calls pointwise_calls(const Launch& launch, Pointwise type) {
  const auto of_rows = [&launch] { return stream_rows(launch, launch.kernel.reads.in(Slot::operand)); };
  const auto of_scores = [&launch] { return score_rows(launch, launch.kernel.reads[0]); };
  switch (type) {
    case Pointwise::norm:
    case Pointwise::layer_norm:
      return norm(launch, type == Pointwise::layer_norm);
    case Pointwise::norm_backward:
    case Pointwise::layer_norm_backward:
      return norm_backward(launch, type == Pointwise::layer_norm_backward);
    case Pointwise::norm_weight_gradient:
    case Pointwise::layer_norm_weight_gradient:
      return norm_weight_gradient(launch, type == Pointwise::layer_norm_weight_gradient);
    case Pointwise::rotary:
    case Pointwise::rotary_backward:
      return rotary_calls(launch, type == Pointwise::rotary_backward);
    case Pointwise::latent_rotary:
    case Pointwise::latent_rotary_backward:
      return latent_rotary_calls(launch, type == Pointwise::latent_rotary_backward);
    case Pointwise::activation:
    case Pointwise::varying_activation:
      return activation(launch);
    case Pointwise::activation_backward:
    case Pointwise::varying_activation_backward:
      return activation_backward(launch);
    case Pointwise::dropout:
      return dropout(launch, of_rows(), draws_of_rows(launch.bound));
    case Pointwise::dropout_backward:
      return dropout_backward(launch, of_rows());
    case Pointwise::score_dropout:
      return dropout(launch, of_scores(), draws_of_scores(launch.bound));
    case Pointwise::score_dropout_backward:
      return dropout_backward(launch, of_scores());
    case Pointwise::add:
    case Pointwise::add_partials:
      return add(launch);
    case Pointwise::softmax:
    case Pointwise::causal_softmax:
      return softmax(launch);
    case Pointwise::softmax_backward:
    case Pointwise::causal_softmax_backward:
      return softmax_backward(launch);
    case Pointwise::embedding:
      return embedding(launch);
    case Pointwise::embedding_backward:
      return embedding_backward(launch);
    case Pointwise::positions:
      return positions(launch);
    case Pointwise::positions_backward:
      return positions_backward(launch);
    case Pointwise::bias_gradient:
      return bias_gradient(launch);
    case Pointwise::count_choices:
      return count_choices(launch);
    case Pointwise::adam:
      return {adam_of(launch.bound, launch.kernel)};
    case Pointwise::quantize:
    case Pointwise::quantize_blocks:
      return quantize(launch);
    case Pointwise::find_maximum:
      return find_maximum(launch);
    case Pointwise::square_sum:
      return {SquareSum{launch.whole(launch.kernel.reads[0]), launch.whole(launch.kernel.writes[0])}};
    case Pointwise::clip_scale:
      return {ClipScale{launch.whole(launch.kernel.reads[0]), launch.whole(launch.kernel.writes[0]),
                        static_cast<float>(launch.bound.plan.clip_grad)}};
    default:
      return moving_calls(launch, type);
  }
}

// {gradient, moments, weight} or {gradient, moments, master}, then the scale where gradients are clipped. A
// weight of lower precision is written last.
kernels::Adam adam_of(const BoundBlock& scratch, const Kernel& kernel) {
  const Launch launch{scratch, kernel};
  Adam call;
  call.gradient = launch.whole(kernel.reads[0]);
  call.mean = launch.whole(kernel.reads[1]);
  call.square = launch.whole(kernel.reads[2]);
  call.master = launch.whole(kernel.reads[3]);
  call.scale = launch.whole_read(Slot::scale);
  call.weight = launch.whole_write(Slot::weight);
  return call;
}

}  // namespace rehearse
