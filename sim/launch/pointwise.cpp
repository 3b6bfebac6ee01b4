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

// Groups of a state space on this rank, whose norm has a weight for each of its columns; 0 of other norms.
std::int64_t groups_of_space(const Launch& launch) {
  if (!launch.kernel.name.starts_with("mamba_norm")) return 0;
  return launch.bound.model.state_space->groups / launch.bound.shape.tp;
}

std::int64_t normalised_width(const Launch& launch, TensorId weight) {
  return launch.elements(weight) / std::max<std::int64_t>(1, groups_of_space(launch));
}

// A weight as long as a row: the block's own norms; shorter: one vector a head.
NormShape norm_shape(const Launch& launch, TensorId input, std::int64_t width) {
  NormShape shape;
  const TensorPlace& place = launch.bound.places[static_cast<std::size_t>(input)];
  shape.centred = launch.bound.model.norm != rehearse::Norm::rms && groups_of_space(launch) == 0 &&
                  !launch.kernel.name.starts_with("query_norm") &&
                  !launch.kernel.name.starts_with("key_norm") && !launch.kernel.name.starts_with("kv_norm");
  const std::int64_t apart = groups_of_space(launch);
  shape.groups = apart > 0 ? apart : place.has_own_matrix() ? 1 : place.columns / width;
  return shape;
}

// Rows of a tensor that is normalised in vectors of `width`.
kernels::Tensor vectors(const Launch& launch, TensorId id, std::int64_t width, std::int64_t groups) {
  return launch.rows(id, launch.elements(id) / (width * groups));
}

Calls norm(const Launch& launch) {
  const TensorId input = launch.kernel.reads[0], weight = launch.kernel.reads[1];
  const std::int64_t width = normalised_width(launch, weight);
  kernels::Norm call;
  call.shape = norm_shape(launch, input, width);
  call.input = vectors(launch, input, width, call.shape.groups);
  call.weight = launch.whole(weight);
  if (launch.reads_more_than(2)) call.bias = launch.whole(launch.kernel.reads[2]);
  call.output = vectors(launch, launch.kernel.writes[0], width, call.shape.groups);
  return {call};
}

Calls norm_backward(const Launch& launch) {
  const bool of_weight = launch.phase == Phase::backward_weight;
  const TensorId gradient = launch.kernel.reads[0], input = launch.kernel.reads[1];
  const std::int64_t width =
      normalised_width(launch, of_weight ? launch.kernel.writes[0] : launch.kernel.reads[2]);
  const NormShape shape = norm_shape(launch, input, width);
  const auto view = [&](TensorId id) { return vectors(launch, id, width, shape.groups); };
  if (!of_weight)
    return {NormInputGradient{shape, view(gradient), view(input), launch.whole(launch.kernel.reads[2]),
                              view(launch.kernel.writes[0])}};
  NormWeightGradient call{shape, view(gradient), view(input), launch.whole(launch.kernel.writes[0]), {}};
  if (launch.kernel.writes.size() > 1) call.bias_gradient = launch.whole(launch.kernel.writes[1]);
  return {call};
}

Calls reorder_calls(const Launch& launch) {
  if (launch.kernel.name.find("_repeat") != std::string::npos) return repeat_calls(launch);
  if (launch.kernel.name.find("_order") != std::string::npos) return order_calls(launch);
  const bool of_module =
      launch.kernel.name.starts_with("join") || launch.kernel.name.starts_with("projected");
  return of_module ? module_calls(launch) : permute_calls(launch);
}

// Experts scale rows by the router's weights.
bool weighs_rows(const Launch& launch) {
  return launch.ends_with("experts_activation") || launch.named("experts_activation_backward");
}

// Rows of an activation: the input is as wide again where it is gated.
std::int64_t activation_rows(const Launch& launch, TensorId output) {
  const std::int64_t width = weighs_rows(launch)
                                 ? launch.bound.model.experts->ffn_hidden / launch.bound.plan.etp
                             : launch.kernel.name.starts_with("shared")
                                 ? launch.bound.model.experts->shared_ffn_hidden / launch.bound.plan.tp
                                 : launch.bound.shape.ffn;
  return launch.elements(output) / width;
}

Calls activation(const Launch& launch) {
  const std::int64_t rows = activation_rows(launch, launch.kernel.writes[0]);
  Activation call{activation_of(launch.bound.model),
                  launch.with_neighbour(launch.kernel.reads, 0, rows),
                  {},
                  launch.write(0, rows)};
  if (weighs_rows(launch)) call.weights = launch.whole(launch.kernel.reads[1]);
  return {call};
}

Calls activation_backward(const Launch& launch) {
  const std::int64_t rows = activation_rows(launch, launch.kernel.reads[0]);
  ActivationBackward call;
  call.kind = activation_of(launch.bound.model);
  call.output_gradient = launch.read(0, rows);
  call.input = launch.with_neighbour(launch.kernel.reads, 1, rows);
  call.input_gradient = launch.with_neighbour(launch.kernel.writes, 0, rows);
  if (weighs_rows(launch)) {
    call.weights = launch.whole(launch.kernel.reads[2]);
    call.weights_gradient = launch.whole(launch.kernel.writes[1]);
    call.weights_gradient.type = Type::fp32;
  }
  return {call};
}

// Rows of a residual stream, where a bias has as many columns.
std::int64_t stream_rows(const Launch& launch, TensorId id) {
  return launch.elements(id) / launch.bound.shape.hidden;
}

// Of rows between the GEMMs, numbered by position and then by sequence of the global batch. A
// context-parallel rank has a chunk from either end of the sequence; what sequence parallelism leaves of them
// lies in one.
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

// Rows are split by position, probabilities by head within each sequence.
Draws draws(const Launch& launch) {
  const BoundBlock& bound = launch.bound;
  const Shape& shape = bound.shape;
  if (!launch.kernel.name.starts_with("attention_dropout")) return draws_of_rows(bound);
  const std::int64_t own = shape.heads * shape.seq * shape.seq, all = bound.plan.tp * own;
  return {bound.first_sequence * all + bound.tensor_rank * own, own, all};
}

// {input}, or {residual, branch[, bias]}; the backward {gradient, mask}.
Calls dropout(const Launch& launch) {
  const TensorId first = launch.kernel.reads[0];
  const bool is_stream = launch.reads_more_than(1) && launch.phase != Phase::backward_input;
  const std::int64_t rows = launch.kernel.name.starts_with("attention_dropout")
                                ? launch.elements(first) / launch.bound.shape.seq
                                : stream_rows(launch, first);
  if (launch.phase == Phase::backward_input)
    return {DropoutBackward{launch.read(0, rows), launch.read(1, rows), launch.write(0, rows),
                            launch.bound.dropout_rate}};
  Dropout call;
  call.rate = launch.bound.dropout_rate;
  call.seed = launch.bound.seed;
  call.input = launch.read(is_stream ? 1 : 0, rows);
  if (is_stream) call.residual = launch.read(0, rows);
  if (launch.reads_more_than(2)) call.bias = launch.whole(launch.kernel.reads[2]);
  call.output = launch.write(0, rows);
  call.mask = launch.write(1, rows);
  call.draws = draws(launch);
  return {call};
}

Calls add(const Launch& launch) {
  const TensorId output = launch.kernel.writes[0];
  const std::int64_t rows = stream_rows(launch, output);
  Add call;
  call.output = launch.write(0, rows);
  std::size_t inputs = 0;
  for (const TensorId id : launch.kernel.reads) {
    if (launch.elements(id) < launch.elements(output)) {
      call.bias = launch.whole(id);
    } else {
      call.inputs.at(inputs++) = launch.rows(id, rows);
    }
  }
  return {call};
}

Calls softmax(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  if (launch.named("top_k")) return choice_calls(launch);
  const std::int64_t rows = launch.elements(launch.kernel.writes[0]) / shape.seq;
  const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  return {Softmax{launch.read(0, rows), launch.write(0, rows), scale, true, shape.seq, 1}};
}

Calls softmax_backward(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  if (launch.named("top_k_backward")) return choice_calls(launch);
  const std::int64_t rows = launch.elements(launch.kernel.writes[0]) / shape.seq;
  const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
  return {SoftmaxBackward{launch.read(0, rows), launch.read(1, rows), launch.write(0, rows), scale}};
}

kernels::Tensor table(const Launch& launch, TensorId id) {
  return launch.rows(id, launch.elements(id) / launch.bound.shape.hidden);
}

// Places of the rows between the GEMMs, and the table in which their positions count: of a context-parallel
// rank the whole, else from the position of the first row on.
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
  if (launch.named("positions")) {
    const Placed places = placed(launch, launch.kernel.reads[1]);
    return {kernels::Positions{places.tokens, launch.read(0, rows), places.table, launch.write(0, rows)}};
  }
  return {Embedding{launch.whole(launch.kernel.reads[0]), table(launch, launch.kernel.reads[1]),
                    launch.write(0, rows), launch.bound.first_vocabulary_row}};
}

Calls embedding_backward(const Launch& launch) {
  const std::int64_t rows = stream_rows(launch, launch.kernel.reads[0]);
  const TensorId gradient = launch.kernel.writes[0];
  if (!launch.reads_more_than(1)) {
    const Placed places = placed(launch, gradient);
    return {PositionsBackward{places.tokens, launch.read(0, rows), places.table}};
  }
  return {EmbeddingBackward{launch.read(0, rows), launch.whole(launch.kernel.reads[1]),
                            table(launch, gradient), launch.bound.first_vocabulary_row}};
}

bool is_scalar(const Launch& launch, TensorId id) {
  return launch.elements(id) == 1;
}

// Rows of what is quantised: of the matrix that it shares, or as the product has them that reads the result
// `to`. What ranks gather first, and what only a maximum is sought of, is of the residual stream where it can
// be.
std::int64_t quantised_rows(const Launch& launch, TensorId from, TensorId to, bool by_columns) {
  const TensorPlace& place = launch.bound.places[static_cast<std::size_t>(from)];
  if (!place.has_own_matrix()) return place.rows;
  const Gemm* product = product_of(launch.bound.block, to);
  if (product != nullptr)
    return by_columns ? product->k * product->batch : launch.elements(from) / product->k;
  const std::int64_t elements = launch.elements(from), width = launch.bound.shape.hidden;
  return elements % width == 0 ? elements / width : 1;
}

// {tensors side by side[, maximum]} to {maximum}, {rows}, {columns} or {rows, columns}.
Calls quantise(const Launch& launch) {
  std::vector<TensorId> from = launch.kernel.reads;
  const std::vector<TensorId>& to = launch.kernel.writes;
  kernels::Quantise call;
  if (is_scalar(launch, from.back())) {
    call.scale = launch.whole(from.back());
    from.pop_back();
  }
  const bool transposes = launch.tensor(to.back()).name.ends_with("_columns");
  const std::int64_t rows = quantised_rows(launch, from.front(), to.front(), transposes && to.size() == 1);
  std::int64_t elements = 0;
  for (const TensorId id : from) elements += launch.elements(id);
  const std::int64_t width = elements / rows;
  call.input = launch.rows(from.front(), rows);
  call.input.columns = width;
  if (is_scalar(launch, to.front())) {
    call.maximum = launch.whole(to.front());
    return {call};
  }
  if (transposes) call.columns = launch.part(to.back(), 0, width, rows);
  if (!transposes || to.size() > 1) call.rows = launch.part(to.front(), 0, rows, width);
  return {call};
}

// Of the columns that lie side by side.
Calls bias_gradient(const Launch& launch) {
  const TensorId bias = launch.kernel.writes[0], first = launch.kernel.reads[0];
  if (launch.named("router_balance") && launch.bound.experts_in_turn) return {};  // no expert has more
  if (launch.named("router_balance"))
    return {CountChoices{launch.integers(first, launch.bound.shape.rows), launch.whole(bias)}};
  std::int64_t elements = 0;
  for (const TensorId id : launch.kernel.reads) elements += launch.elements(id);
  kernels::Tensor gradient = launch.rows(first, elements / launch.elements(bias));
  gradient.columns = launch.elements(bias);
  return {BiasGradient{gradient, launch.whole(bias)}};
}

}  // namespace

Calls pointwise_calls(const Launch& launch, Pointwise kind) {
  if (launch.kernel.name.starts_with("ring_")) return ring_calls(launch);
  switch (kind) {
    case Pointwise::norm:
      return norm(launch);
    case Pointwise::norm_backward:
      return norm_backward(launch);
    case Pointwise::rotary:
      return rotary_calls(launch);
    case Pointwise::activation:
    case Pointwise::varying_activation:
      return activation(launch);
    case Pointwise::activation_backward:
    case Pointwise::varying_activation_backward:
      return activation_backward(launch);
    case Pointwise::dropout:
      return dropout(launch);
    case Pointwise::add:
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
    case Pointwise::permute:
      return permute_calls(launch);
    case Pointwise::reorder:
      return reorder_calls(launch);
    case Pointwise::cross_entropy:
      return loss_calls(launch);
    case Pointwise::cross_entropy_backward:
      return loss_backward_calls(launch);
    case Pointwise::bias_gradient:
      return launch.named("scan_weight_gradient") || launch.named("convolution_weight_gradient")
                 ? added_sums_calls(launch)
                 : bias_gradient(launch);
    case Pointwise::convolution:
      return convolution_calls(launch);
    case Pointwise::convolution_backward:
      return convolution_backward_calls(launch);
    case Pointwise::adam:
      return {adam_of(launch.bound, launch.kernel)};
    case Pointwise::quantise:
    case Pointwise::quantise_blocks:
      return quantise(launch);
    case Pointwise::square_sum:
      return {SquareSum{launch.whole(launch.kernel.reads[0]), launch.whole(launch.kernel.writes[0])}};
    case Pointwise::clip_scale:
      return {ClipScale{launch.whole(launch.kernel.reads[0]), launch.whole(launch.kernel.writes[0]),
                        static_cast<float>(launch.bound.plan.clip_grad)}};
    case Pointwise::rearrange:
      return {};
    case Pointwise::spread_rows:
    case Pointwise::collect_rows:
    case Pointwise::scatter_add:
    case Pointwise::quantise_fp4:
    case Pointwise::quantise_fp4_at_random:
    case Pointwise::eager:  // no plan that is executed has them (not_executable())
      break;
  }
  return {};
}

// {gradient, moments, weight} or {gradient, moments, master}, then the scale where gradients are clipped; a
// lower precision's weight is written last.
kernels::Adam adam_of(const BoundBlock& scratch, const Kernel& kernel) {
  const Launch launch{scratch, kernel, Phase::forward};
  Adam call;
  call.gradient = launch.whole(kernel.reads[0]);
  call.mean = launch.whole(kernel.reads[1]);
  call.square = launch.whole(kernel.reads[2]);
  call.master = launch.whole(kernel.reads[3]);
  if (kernel.reads.size() > 4) call.scale = launch.whole(kernel.reads[4]);
  if (kernel.writes.size() > 3) call.weight = launch.whole(kernel.writes[3]);
  return call;
}

}  // namespace rehearse
