#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/frameworks/traits.h"
#include "plan/work/blocks.h"
#include "plan/work/grouped.h"
#include "plan/work/pointwise.h"
#include "plan/work/routed.h"
#include "plan/work/router.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// Rows that one rank sends to the experts and receives from them. Rows of all ranks differ: with tensor
// parallelism, a plan is legal only with sequence parallelism.
struct Routing {
  std::int64_t local = 0;     // on this rank
  std::int64_t sent = 0;      // rows
  std::int64_t received = 0;  // rows from the ranks of the ep group
  std::int64_t rows = 0;      // of one local expert, with those that the etp group gathers
  std::int64_t visiting = 0;  // rows that arrive once, for any of the local experts
  std::int64_t ffn = 0;       // width on this rank
  std::int64_t ep = 1, etp = 1;
};

std::int64_t scaled_up(std::int64_t rows, double factor, std::int64_t parts) {
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(rows) * factor / static_cast<double>(parts) - 1e-9));
}

Routing routing_of(const Experts& experts, const Plan& plan, const Shape& shape) {
  Routing to;
  to.local = experts.count / plan.ep;
  to.ep = plan.ep;
  to.etp = plan.etp;
  to.ffn = experts.ffn_hidden / plan.etp;
  const std::int64_t chosen = shape.rows * experts.per_token;
  const std::int64_t from_group = scaled_up(chosen * to.ep, plan.expert_load(), experts.count);
  to.received = to.local * from_group;
  to.rows = from_group * to.etp;
  const bool padded = plan.moe_capacity > 0;
  to.sent = to.ep == 1 ? to.received
            : padded   ? experts.count * scaled_up(chosen, plan.moe_capacity, experts.count)
                       : chosen;
  const double visiting = copies({experts.count, experts.per_token}, plan.ep) * plan.expert_load();
  to.visiting = std::min(scaled_up(shape.rows, visiting, 1), shape.rows * plan.ep);
  return to;
}

// Dispatched rows, and the weight of each in its token's sum (-1: the weight stays on the token's rank).
struct RoutedTokens {
  TensorId rows = -1;
  TensorId weights = -1;

  KernelTensors all() const {
    return weights < 0 ? KernelTensors{rows} : KernelTensors{rows, {weights, Slot::row_weights}};
  }
};

class SparseLayer {
 public:
  SparseLayer(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape)
      : b_(b),
        model_(model),
        shape_(shape),
        to_(routing_of(*model.experts, plan, shape)),
        plan_(plan),
        adding_(plan.fused_permute ? Pointwise::unpermute : Pointwise::scatter_add) {}

  TensorId run(const RoutedRows& of) {
    const Choices chosen = route(b_, model_, plan_, shape_, of.scored);
    choices_ = chosen.experts;
    b_.enter(LayerPart::experts);
    const RoutedTokens tokens{between("latent_down", of.rows, {shape_.hidden, shape_.latent}),
                              chosen.weights};
    TensorId made = visit(tokens);
    if (model_.experts->latent_norm) made = normalise(b_, "latent_norm", Norm::rms, made, shape_.latent);
    return between("latent_up", made, {shape_.latent, shape_.hidden});
  }

 private:
  // Output of the experts for the rows, summed for each token.
  TensorId visit(RoutedTokens tokens) {
    if (plan_.sends_rows_once()) return visit_once(tokens);
    if (plan_.weights_rows_at_home()) std::swap(tokens.weights, weights_at_home_);
    tokens = send_out(tokens);
    tokens = gather_over_tensor_ranks(tokens);
    tokens = sort("sort_by_expert", tokens, {Pointwise::rows_by_expert, Pointwise::rows_by_source});
    align("pad_rows", tokens.rows);
    TensorId rows = compute(tokens);
    align("unpad_rows", rows);
    rows = sort("sort_by_source", {rows, -1}, {Pointwise::rows_by_source, Pointwise::rows_by_expert}).rows;
    return bring_home(rows);
  }

  // A linear layer to the width that experts see, or back (NVIDIA 2025, Nemotron 3, section 2.1: LatentMoE).
  // Each rank holds it whole (Megatron core, moe_layer.py, fc1_latent_proj).
  struct Widths {
    std::int64_t from = 0, to = 0;
  };
  TensorId between(const std::string& name, TensorId rows, const Widths& widths) {
    if (model_.experts->latent == 0) return rows;
    ColumnLinear linear{name, rows};
    linear.input_width = widths.from;
    linear.weight = b_.parameter(name + "_weight", Shape::elements(widths.from, widths.to));
    linear.outputs = {{name + "_rows", widths.to}};
    return replicated_linear(b_, shape_, linear).front();
  }

  TensorId make_rows(const std::string& name, std::int64_t rows) {
    return b_.activation(name, Shape::elements(rows, shape_.latent));
  }
  TensorId make_weights(const std::string& name, std::int64_t rows) {
    return b_.activation(name, static_cast<double>(rows), kScoreBytes);
  }
  RoutedTokens make(const std::string& name, std::int64_t rows, const RoutedTokens& like) {
    RoutedTokens made{make_rows(name, rows)};
    if (like.weights >= 0) made.weights = make_weights(name + "_weights", rows);
    return made;
  }

  // A kernel that moves each tensor of `from` to the one in `to`, and a kernel that moves its gradient back.
  struct Moves {
    Pointwise there, back;
  };
  void move(const std::string& name, const Moves& what, const KernelTensors& from, const KernelTensors& to,
            const KernelTensors& map) {
    KernelTensors reads = from;
    reads.append(map);
    b_.forward({name, what.there, reads, to});
    b_.undo([&b = b_, name, back = what.back, from, to, map] {
      KernelTensors gradients, makes;
      for (std::size_t i = 0; i < to.size(); ++i) gradients.push_back(b.gradient_of(to[i]), to.slot(i));
      gradients.append(map);
      for (std::size_t i = 0; i < from.size(); ++i) makes.push_back(b.gradient_like(from[i]), from.slot(i));
      b.backward_input({name + "_backward", back, gradients, makes});
    });
  }

  // A collective over the experts' ranks. Its backward is `inverse`, with the same bytes.
  void over_experts(const std::string& name, CollectiveOp op, CollectiveOp inverse, CommGroup group,
                    double bytes, TensorId from, TensorId to) {
    b_.forward({name, Collective{op, group, bytes}, {from}, {to}});
    b_.undo([&b = b_, name, inverse, group, bytes, from, to] {
      b.backward_input({name + "_backward",
                        Collective{inverse, group, bytes},
                        {b.gradient_of(to)},
                        {b.gradient_like(from)}});
    });
  }

  // Each row goes to a rank once. There it is copied for each local expert that needs it. The outputs of
  // these experts are summed there before the row returns.
  TensorId visit_once(const RoutedTokens& tokens) {
    const bool by_hybridep = plan_.dispatcher == Dispatcher::hybridep;
    KernelTensors map;
    if (by_hybridep) map.push_back(map_of_experts(), Slot::map);
    const TensorId route = by_hybridep ? map_of_all_ranks(map.front()) : layout_of_own_rows();
    b_.host_waits();
    RoutedTokens visiting{make_rows("dispatched", to_.visiting)};
    visiting.weights = make_weights("dispatched_weights", to_.visiting * model_.experts->per_token);
    exchange_once("dispatch", {CollectiveOp::dispatch, CollectiveOp::combine}, tokens.all(), visiting.all(),
                  route);
    RoutedTokens permuted = make("permuted", to_.local * to_.rows, visiting);
    const Moves out = by_hybridep
                          ? Moves{Pointwise::spread_rows, Pointwise::collect_rows}
                          : Moves{Pointwise::copy_visitors,
                                  plan_.fused_permute ? Pointwise::sum_visitors : Pointwise::scatter_add};
    move("permute", out, visiting.all(), permuted.all(), map);
    const TensorId made = compute(permuted);
    const TensorId sums = make_rows("row_sums", to_.visiting);
    move("unpermute", {out.back, out.there}, {made}, {sums}, map);
    const TensorId output = make_rows("routed_output", shape_.rows);
    exchange_once("combine", {CollectiveOp::combine, CollectiveOp::dispatch}, {sums}, {output}, route);
    return output;
  }

  // DeepEP counts the destinations of the rank's own rows (deep_ep/buffer.py, get_dispatch_layout).
  TensorId layout_of_own_rows() {
    const TensorId route = make_route();
    b_.forward({"dispatch_layout", Pointwise::eager, {choices_}, {route}});
    return route;
  }

  // HybridEP gathers a byte for each row of all ranks and each expert. It searches them for the destination
  // of each row, and for the place of each arriving row among the rows of each local expert
  // (csrc/hybrid_ep/executor/executor.cu, allgather_routing_map and metadata_preprocess_core).
  TensorId map_of_all_ranks(TensorId of_experts) {
    const double bytes = static_cast<double>(to_.ep) * Shape::elements(shape_.rows, model_.experts->count);
    const TensorId map = b_.activation("routing_map", bytes, 1);
    b_.forward({"gather_routing_map",
                Collective{CollectiveOp::all_gather, CommGroup::expert, bytes},
                {choices_},
                {map}});
    const TensorId route = make_route();
    b_.forward({"scan_routing_map", Pointwise::eager, {map}, {route, of_experts}});
    return route;
  }

  // Place of each arriving row among those of each local expert (csrc/hybrid_ep/extension/permute.cu,
  // row_id_map).
  TensorId map_of_experts() {
    return b_.activation("rows_of_experts", Shape::elements(to_.visiting, to_.local), kScoreBytes);
  }

  // Destination of each row on each rank, kept for combine and for the backward pass.
  TensorId make_route() {
    return b_.activation("dispatch_route", Shape::elements(shape_.rows, to_.ep), kScoreBytes);
  }

  struct Exchanges {
    CollectiveOp there, back;
  };
  void exchange_once(const std::string& name, const Exchanges& what, const KernelTensors& from,
                     const KernelTensors& to, TensorId route) {
    const KernelTensors& visiting = what.there == CollectiveOp::dispatch ? to : from;
    Collective call{what.there, CommGroup::expert, b_[visiting.front()].bytes()};
    call.fanout = {model_.experts->count, model_.experts->per_token};
    if (visiting.has(Slot::row_weights)) call.weights = b_[visiting.in(Slot::row_weights)].elements;
    KernelTensors reads = from;
    reads.push_back(route, Slot::map);
    b_.forward({name, call, reads, to});
    call.op = what.back;
    b_.undo([&b = b_, name, call, from, to, route] {
      KernelTensors gradients = {{route, Slot::map}}, makes;
      for (std::size_t i = 0; i < to.size(); ++i) gradients.push_back(b.gradient_of(to[i]), to.slot(i));
      for (std::size_t i = 0; i < from.size(); ++i) makes.push_back(b.gradient_like(from[i]), from.slot(i));
      b.backward_input({name + "_backward", call, gradients, makes});
    });
  }

  // One row for each choice, first in the order of the experts, then sent to their ranks.
  RoutedTokens send_out(const RoutedTokens& tokens) {
    b_.enter(LayerPart::dispatch);
    const RoutedTokens sent = make("permuted", to_.sent, tokens);
    move("permute", {Pointwise::permute, adding_}, tokens.all(), sent.all(), {{choices_, Slot::choices}});
    b_.enter(LayerPart::experts);
    if (to_.ep == 1) return sent;
    const RoutedTokens arrived = make("dispatched", to_.received, tokens);
    over_experts("dispatch", CollectiveOp::all_to_all, CollectiveOp::all_to_all, CommGroup::expert,
                 b_[arrived.rows].bytes(), sent.rows, arrived.rows);
    if (sent.weights < 0) return arrived;
    over_experts("dispatch_weights", CollectiveOp::all_to_all, CollectiveOp::all_to_all, CommGroup::expert,
                 b_[arrived.weights].bytes(), sent.weights, arrived.weights);
    return arrived;
  }

  RoutedTokens gather_over_tensor_ranks(const RoutedTokens& tokens) {
    if (to_.etp == 1) return tokens;
    RoutedTokens all{make_rows("expert_rows", to_.local * to_.rows)};
    if (tokens.weights >= 0) all.weights = make_weights("expert_row_weights", to_.local * to_.rows);
    over_experts("expert_all_gather", CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                 CommGroup::expert_tensor, b_[all.rows].bytes(), tokens.rows, all.rows);
    if (tokens.weights < 0) return all;
    over_experts("expert_weights_all_gather", CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                 CommGroup::expert_tensor, b_[all.weights].bytes(), tokens.weights, all.weights);
    return all;
  }

  // Orders rows from rank after rank by local expert, or back.
  RoutedTokens sort(const std::string& name, const RoutedTokens& tokens, const Moves& what) {
    if (to_.local == 1 || to_.ep * to_.etp == 1) return tokens;
    RoutedTokens sorted{make_rows(name + "_rows", to_.local * to_.rows)};
    if (tokens.weights >= 0) sorted.weights = make_weights(name + "_weights", to_.local * to_.rows);
    move(name, what, tokens.all(), sorted.all(), {});
    return sorted;
  }

  // GEMMs in fp8 need each expert's rows in multiples of 16 or 32. So Megatron core copies the varying rows,
  // before and after (core/transformer/moe/experts.py, Fp8Padding; since v0.10). Libraries that send a row
  // once pad as they permute.
  void align(const std::string& name, TensorId rows) {
    if (traits(plan_).fp8 != Fp8Library::transformer_engine || !shape_.quantized || plan_.moe_capacity > 0)
      return;
    b_.forward({name, Pointwise::rearrange, {rows, rows}, {}});
    b_.undo([&b = b_, name, rows] {
      const TensorId gradient = b.gradient_of(rows);
      b.backward_input({name + "_backward", Pointwise::rearrange, {gradient, gradient}, {}});
    });
  }

  TensorId compute(const RoutedTokens& tokens) {
    return run_experts(b_, model_, plan_, shape_,
                       {to_.local, to_.rows, to_.ffn, tokens.rows, tokens.weights});
  }

  // The partial sums of the etp ranks are reduced, and rows return to their ranks. There, each token sums the
  // rows of its choices, which were weighted with the activation.
  TensorId bring_home(TensorId rows) {
    if (to_.etp > 1) {
      const TensorId sum = make_rows("expert_sums", to_.received);
      over_experts("expert_reduce_scatter", CollectiveOp::reduce_scatter, CollectiveOp::all_gather,
                   CommGroup::expert_tensor, b_[rows].bytes(), rows, sum);
      rows = sum;
    }
    if (to_.ep > 1) {
      const TensorId returned = make_rows("combined", to_.sent);
      over_experts("combine", CollectiveOp::all_to_all, CollectiveOp::all_to_all, CommGroup::expert,
                   b_[rows].bytes(), rows, returned);
      rows = returned;
    }
    return add_up({rows, weights_at_home_});
  }

  // Sums each token's rows, which are weighted here if they were not weighted before.
  TensorId add_up(RoutedTokens returned) {
    if (returned.weights >= 0 && !plan_.fused_permute) returned = {weigh(returned)};
    const TensorId output = make_rows("routed_output", shape_.rows);
    move("unpermute", {adding_, Pointwise::permute}, returned.all(), {output}, {{choices_, Slot::choices}});
    return output;
  }

  // Weights of the rows, picked by their mask if the plan does so, and a multiplication. Its gradients are
  // computed separately.
  TensorId weigh(const RoutedTokens& of) {
    TensorId weights = of.weights;
    if (plan_.picks_rows_by_mask()) {
      weights = make_weights("picked_weights", to_.sent);
      move("pick_weights", {Pointwise::eager, Pointwise::eager}, {of.weights}, {weights}, {});
      b_.host_waits();
    }
    const TensorId weighed = make_rows("weighed", to_.sent);
    b_.forward({"weigh", Pointwise::eager, {of.rows, weights}, {weighed}});
    b_.undo([&b = b_, rows = of.rows, weights, weighed] {
      const TensorId gradient = b.gradient_of(weighed);
      const TensorId products = b.scratch_gradient("weight_products", b[rows].elements);
      b.backward_input({"weigh_backward", Pointwise::eager, {gradient, weights}, {b.new_gradient(rows)}});
      b.backward_input({"weight_products", Pointwise::eager, {gradient, rows}, {products}});
      b.backward_input({"weight_sums", Pointwise::eager, {products}, {b.gradient_like(weights)}});
    });
    return weighed;
  }

  BlockBuilder& b_;
  const Model& model_;
  const Shape& shape_;
  Routing to_;
  const Plan& plan_;
  Pointwise adding_;  // sums the rows of a token
  TensorId choices_ = -1, weights_at_home_ = -1;
};

}  // namespace

TensorId routed_experts(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape,
                        const RoutedRows& rows) {
  return SparseLayer(b, model, plan, shape).run(rows);
}

}  // namespace rehearse
