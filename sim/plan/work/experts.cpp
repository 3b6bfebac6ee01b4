#include <cmath>

#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"
#include "plan/work/quantise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

constexpr double kScoreBytes = 4;  // the router's scores and choices are fp32 and int32

// What one rank sends to and receives from the experts. Rows of all ranks differ: with tensor parallelism a
// plan is legal only with sequence parallelism.
struct Routing {
  std::int64_t experts = 0;   // of the whole layer
  std::int64_t local = 0;     // on this rank
  std::int64_t choices = 0;   // top-k
  std::int64_t sent = 0;      // rows
  std::int64_t received = 0;  // rows from the ranks of the ep group
  std::int64_t rows = 0;      // of one local expert, with what the etp group gathers
  std::int64_t ffn = 0;       // width on this rank
  std::int64_t ep = 1, etp = 1;
};

std::int64_t scaled_up(std::int64_t rows, double factor, std::int64_t parts) {
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(rows) * factor / static_cast<double>(parts) - 1e-9));
}

Routing routing_of(const Experts& experts, const Plan& plan, const Shape& shape) {
  Routing to;
  to.experts = experts.count;
  to.choices = experts.per_token;
  to.local = experts.count / plan.ep;
  to.ep = plan.ep;
  to.etp = plan.etp;
  to.ffn = experts.ffn_hidden / plan.etp;
  const std::int64_t chosen = shape.rows * to.choices;
  const std::int64_t from_group = scaled_up(chosen * to.ep, plan.expert_load(), experts.count);
  to.received = to.local * from_group;
  to.rows = from_group * to.etp;
  const bool padded = plan.moe_capacity > 0;
  to.sent = to.ep == 1 ? to.received
            : padded   ? experts.count * scaled_up(chosen, plan.moe_capacity, experts.count)
                       : chosen;
  return to;
}

// Rows on their way, and the weight of each in its token's sum.
struct Travellers {
  TensorId rows = -1;
  TensorId weights = -1;
};

class SparseLayer {
 public:
  SparseLayer(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape)
      : b_(b),
        model_(model),
        shape_(shape),
        to_(routing_of(*model.experts, plan, shape)),
        reruns_activation_(reruns(plan, RecomputeModule::moe_act)),
        rows_vary_(plan.moe_capacity <= 0),
        adding_(plan.fused_permute ? Pointwise::permute : Pointwise::scatter_add) {}

  TensorId run(TensorId input) {
    Travellers tokens = send_out(route(input));
    tokens = gather_over_tensor_ranks(tokens);
    tokens = sort("sort_by_expert", tokens);
    TensorId rows = compute(tokens);
    rows = sort("sort_by_source", {rows, -1}).rows;
    return bring_home(rows);
  }

 private:
  TensorId make_rows(const std::string& name, std::int64_t rows) {
    return b_.activation(name, Shape::elements(rows, shape_.hidden));
  }
  TensorId make_weights(const std::string& name, std::int64_t rows) {
    return b_.activation(name, static_cast<double>(rows), kScoreBytes);
  }

  // A kernel that moves each tensor of `from` to the one of `to`, and one that moves its gradient back.
  struct Moves {
    Pointwise there, back;
  };
  void move(const std::string& name, const Moves& what, const std::vector<TensorId>& from,
            const std::vector<TensorId>& to, const std::vector<TensorId>& map) {
    std::vector<TensorId> reads = from;
    reads.insert(reads.end(), map.begin(), map.end());
    b_.forward({name, what.there, reads, to});
    b_.undo([&b = b_, name, back = what.back, from, to, map] {
      std::vector<TensorId> gradients = map, makes;
      for (const TensorId tensor : to) gradients.push_back(b.gradient_of(tensor));
      for (const TensorId tensor : from) makes.push_back(b.gradient_like(tensor));
      b.backward_input({name + "_backward", back, gradients, makes});
    });
  }

  // A collective over the experts' ranks, undone by `inverse` of as many bytes.
  void over_experts(const std::string& name, CollectiveOp op, CollectiveOp inverse, Axis axis, double bytes,
                    TensorId from, TensorId to) {
    b_.forward({name, Collective{op, axis, bytes, 1, true}, {from}, {to}});
    b_.undo([&b = b_, name, inverse, axis, bytes, from, to] {
      b.backward_input({name + "_backward",
                        Collective{inverse, axis, bytes, 1, true},
                        {b.gradient_of(to)},
                        {b.gradient_like(from)}});
    });
  }

  // Scores of all experts, then the top-k: their weights, and where each row goes.
  Travellers route(TensorId input) {
    ColumnLinear router{"router", input};
    router.weight = b_.parameter("router_weight", Shape::elements(shape_.hidden, to_.experts));
    router.outputs = {{"expert_scores", to_.experts}};
    const TensorId scores = replicated_linear(b_, shape_, router).front();
    const std::int64_t chosen = shape_.rows * to_.choices;
    const TensorId weights = make_weights("expert_weights", chosen);
    choices_ = b_.activation("expert_choices", static_cast<double>(chosen), kScoreBytes);
    std::vector<TensorId> reads = {scores};
    if (model_.experts->router_bias) reads.push_back(router_bias());
    b_.forward({"top_k", Pointwise::softmax, reads, {weights, choices_}});
    b_.undo([&b = b_, scores, weights, choices = choices_] {
      b.backward_input({"top_k_backward",
                        Pointwise::softmax_backward,
                        {b.gradient_of(weights), scores, choices},
                        {b.new_gradient(scores)}});
    });
    return {input, weights};
  }

  // Raised or lowered by how many tokens chose each expert (DeepSeek-V3, section 2.1.2): its "gradient".
  TensorId router_bias() {
    const TensorId bias = b_.parameter("router_bias", static_cast<double>(to_.experts));
    b_.undo([&b = b_, bias, choices = choices_] {
      b.backward_weight(
          {"router_bias_gradient", Pointwise::bias_gradient, {choices}, {b.parameter_gradient(bias)}});
    });
    return bias;
  }

  // One row for each choice, in the order of the experts, then to their ranks.
  Travellers send_out(const Travellers& tokens) {
    const Travellers sent{make_rows("permuted", to_.sent), make_weights("permuted_weights", to_.sent)};
    move("permute", {Pointwise::permute, adding_}, {tokens.rows, tokens.weights}, {sent.rows, sent.weights},
         {choices_});
    if (to_.ep == 1) return sent;
    const Travellers arrived{make_rows("dispatched", to_.received),
                             make_weights("dispatched_weights", to_.received)};
    over_experts("dispatch", CollectiveOp::all_to_all, CollectiveOp::all_to_all, Axis::ep,
                 b_[arrived.rows].bytes(), sent.rows, arrived.rows);
    over_experts("dispatch_weights", CollectiveOp::all_to_all, CollectiveOp::all_to_all, Axis::ep,
                 b_[arrived.weights].bytes(), sent.weights, arrived.weights);
    return arrived;
  }

  Travellers gather_over_tensor_ranks(const Travellers& tokens) {
    if (to_.etp == 1) return tokens;
    const Travellers all{make_rows("expert_rows", to_.local * to_.rows),
                         make_weights("expert_row_weights", to_.local * to_.rows)};
    over_experts("expert_all_gather", CollectiveOp::all_gather, CollectiveOp::reduce_scatter, Axis::tp,
                 b_[all.rows].bytes(), tokens.rows, all.rows);
    over_experts("expert_weights_all_gather", CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                 Axis::tp, b_[all.weights].bytes(), tokens.weights, all.weights);
    return all;
  }

  // What came from one rank after the other is ordered by local expert, or back.
  Travellers sort(const std::string& name, const Travellers& tokens) {
    if (to_.local == 1 || to_.ep * to_.etp == 1) return tokens;
    Travellers sorted{make_rows(name + "_rows", to_.local * to_.rows)};
    std::vector<TensorId> from = {tokens.rows}, to = {sorted.rows};
    if (tokens.weights >= 0) {
      sorted.weights = make_weights(name + "_weights", to_.local * to_.rows);
      from.push_back(tokens.weights);
      to.push_back(sorted.weights);
    }
    move(name, {Pointwise::reorder, Pointwise::reorder}, from, to, {});
    return sorted;
  }

  // A product for each local expert.
  TensorId grouped(const std::string& name, TensorId input, std::int64_t depth, std::int64_t width) {
    const auto groups = static_cast<double>(to_.local);
    const TensorId weight = b_.expert_parameter(name + "_weight", groups * Shape::elements(depth, width));
    const TensorId output = b_.activation(name + "_output", groups * Shape::elements(to_.rows, width));
    const auto gemm = [&to = to_](std::int64_t m, std::int64_t n, std::int64_t k) {
      return Gemm{m, n, k, to.local, true};
    };
    const QuantisedInput operand = quantise_input(b_, shape_, name, input);
    b_.forward({name, gemm(to_.rows, width, depth), {operand.rows, weight}, {output}});
    const Gemm for_input = b_.input_gradient(gemm(to_.rows, depth, width)),
               for_weight = b_.weight_gradient(gemm(width, depth, to_.rows));
    b_.undo([&b = b_, shape = shape_, name, input, operand, weight, output, for_input, for_weight] {
      const QuantisedGradient gradient = quantise_gradient(b, shape, name, {b.gradient_of(output)});
      b.backward_input(
          {name + "_input_gradient", for_input, {gradient.rows.front(), weight}, {b.new_gradient(input)}});
      b.backward_weight({name + "_weight_gradient",
                         for_weight,
                         {gradient.columns.front(), input_by_columns(b, shape, name, operand)},
                         {b.parameter_gradient(weight)}});
    });
    return output;
  }

  TensorId compute(const Travellers& tokens) {
    const std::int64_t width = model_.gated_mlp ? 2 * to_.ffn : to_.ffn;
    const TensorId up = grouped("experts_up", tokens.rows, shape_.hidden, width);
    const double elements = static_cast<double>(to_.local) * Shape::elements(to_.rows, to_.ffn);
    const std::size_t first = b_.forward_kernels();
    const TensorId activated = activate(b_, "experts_activation", {up, tokens.weights}, elements, rows_vary_);
    if (reruns_activation_) b_.rerun_from(first);
    return grouped("experts_down", activated, to_.ffn, shape_.hidden);
  }

  // The partial sums of the etp ranks meet, rows return to their ranks and each token adds up its choices,
  // which were weighted with the activation.
  TensorId bring_home(TensorId rows) {
    if (to_.etp > 1) {
      const TensorId sum = make_rows("expert_sums", to_.received);
      over_experts("expert_reduce_scatter", CollectiveOp::reduce_scatter, CollectiveOp::all_gather, Axis::tp,
                   b_[rows].bytes(), rows, sum);
      rows = sum;
    }
    if (to_.ep > 1) {
      const TensorId returned = make_rows("combined", to_.sent);
      over_experts("combine", CollectiveOp::all_to_all, CollectiveOp::all_to_all, Axis::ep, b_[rows].bytes(),
                   rows, returned);
      rows = returned;
    }
    const TensorId output = make_rows("routed_output", shape_.rows);
    move("unpermute", {adding_, Pointwise::permute}, {rows}, {output}, {choices_});
    return output;
  }

  BlockBuilder& b_;
  const Model& model_;
  const Shape& shape_;
  Routing to_;
  bool reruns_activation_;
  bool rows_vary_;    // nothing pads them to a capacity
  Pointwise adding_;  // what adds up the rows of a token
  TensorId choices_ = -1;
};

// Every token visits the shared experts: an MLP split like any other.
TensorId add_shared(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input,
                    TensorId routed) {
  const FeedForward shared{"shared", model.experts->shared_ffn_hidden / plan.tp, false};
  const std::size_t first = b.forward_kernels();
  const Branch branch = feed_forward(b, model, shape, shared, input);
  if (reruns(plan, RecomputeModule::shared_experts)) b.rerun_from(first);
  return add_residual(b, {"shared_sum", routed, branch.output, -1, false}, "mixed_output");
}

}  // namespace

Branch experts(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input) {
  const TensorId routed = SparseLayer(b, model, plan, shape).run(input);
  if (model.experts->shared_ffn_hidden == 0) return {routed};
  return {add_shared(b, model, plan, shape, input, routed)};
}

}  // namespace rehearse
