#include "plan/work/router.h"

#include <array>
#include <span>
#include <string>

#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

constexpr double kCountBytes = 8;  // of 64-bit integers

// A bias that is raised or lowered by how many tokens chose each expert (DeepSeek-V3, section 2.1.2): its
// "gradient".
TensorId router_bias(BlockBuilder& b, const Model& model, TensorId choices) {
  const TensorId bias = b.parameter("router_bias", static_cast<double>(model.experts->count));
  b.undo([&b, bias, choices] {
    b.backward_weight({"router_balance",
                       Pointwise::count_choices,
                       {{choices, Slot::choices}},
                       {b.parameter_gradient(bias)}});
  });
  return bias;
}

// Does the host need the router's counts before it launches the kernels that move rows? Without a capacity,
// it must know how many rows go to each rank. With a mask it counts the rows, although a capacity fixes their
// number. DeepEP and HybridEP count by themselves, later.
bool host_asks(const Plan& plan) {
  return !plan.sends_rows_once() && (plan.moe_capacity <= 0 || plan.picks_rows_by_mask());
}

// Zeros, a copy of them, and a scatter into the copy: torch.zeros_like(x).scatter(...).
constexpr std::array kChosen = {"narrowed", "gates_zero", "gates_copy", "gates",
                                "map_zero", "map_copy",   "map"};
constexpr std::array kCapacity = {"capacity_top_k", "mask_zero", "mask_copy", "mask"};
constexpr std::array kChosenBackward = {"gates_backward", "narrowed_backward"};
constexpr std::array kLoss = {"loss_product", "loss_total", "loss_scaled", "loss_logged", "loss_tracked"};
constexpr std::array kLossBackward = {"loss_one_backward", "loss_scale_backward", "loss_scaled_backward",
                                      "loss_product_backward", "loss_spread_backward"};

// One operation after another, on tensors of the scores' size or of the experts' counts.
class EagerRouter {
 public:
  EagerRouter(BlockBuilder& b, const Plan& plan, const Model& model, TensorId scores)
      : b_(b),
        plan_(plan),
        scores_(scores),
        all_(b[scores].elements),
        experts_(static_cast<double>(model.experts->count)) {}

  void choose(const Choices& to, KernelTensors reads) {
    const TensorId best = forward("top_k", std::move(reads), all_);
    const TensorId shares = forward("shares", {forward("sort", {best}, all_)}, all_);
    TensorId last = chain(kChosen, shares, all_);
    const TensorId counts = forward("counts", {last}, experts_, kCountBytes);
    if (plan_.moe_capacity > 0) last = chain(kCapacity, last, all_);
    b_.forward({name("weights"), Pointwise::eager, {last}, {to.weights}});
    b_.forward({name("choices"), Pointwise::eager, {last}, {to.experts}});
    b_.undo([this_ = *this, to, shares]() mutable { this_.back(to, shares); });
    balance(counts);
    if (plan_.moe_capacity <= 0 && !plan_.sends_rows_once()) gather(counts);
  }

 private:
  static std::string name(const char* what) { return std::string("router_") + what; }

  TensorId forward(const char* what, KernelTensors reads, double elements, double bytes = kScoreBytes) {
    const TensorId output = b_.activation(name(what), elements, bytes);
    b_.forward({name(what), Pointwise::eager, std::move(reads), {output}});
    return output;
  }
  TensorId chain(std::span<const char* const> names, TensorId from, double elements) {
    for (const char* what : names) from = forward(what, {from}, elements);
    return from;
  }
  TensorId backward(std::span<const char* const> names, TensorId from, double elements) {
    for (const char* what : names) {
      const TensorId gradient = b_.scratch_gradient(name(what), elements, kScoreBytes);
      b_.backward_input({name(what), Pointwise::eager, {from}, {gradient}});
      from = gradient;
    }
    return from;
  }

  void back(const Choices& to, TensorId shares) {
    TensorId gradient = b_.gradient_of(to.weights);
    if (plan_.moe_capacity > 0) gradient = backward(std::array{"capacity_backward"}, gradient, all_);
    gradient = backward(kChosenBackward, gradient, all_);
    const TensorId of_best = b_.scratch_gradient(name("shares_backward"), all_, kScoreBytes);
    b_.backward_input({name("shares_backward"), Pointwise::eager, {gradient, shares}, {of_best}});
    const TensorId zero = backward(std::array{"top_k_zero_backward"}, of_best, all_);
    b_.backward_input(
        {name("top_k_backward"), Pointwise::eager, {zero, to.experts}, {b_.new_gradient(scores_)}});
  }

  // The auxiliary loss: the sum of each expert's shares, times the number of tokens that chose it (Fedus et
  // al. 2021, equation 4).
  void balance(TensorId counts) {
    const TensorId shares = forward("loss_shares", {scores_}, all_);
    TensorId total = counts;
    if (plan_.tp > 1 || plan_.cp > 1) {
      total = b_.activation(name("loss_counts"), experts_, kCountBytes);
      const CommGroup group = plan_.tp > 1 ? CommGroup::tensor : CommGroup::context;
      b_.forward({name("loss_counts"),
                  Collective{CollectiveOp::all_reduce, group, experts_ * kCountBytes},
                  {counts},
                  {total}});
    }
    const TensorId sums = forward("loss_sums", {shares, total}, experts_);
    chain(kLoss, sums, experts_);
    b_.undo([this_ = *this, shares, sums]() mutable {
      const TensorId spread = this_.backward(kLossBackward, sums, this_.experts_);
      this_.b_.backward_input({name("loss_shares_backward"),
                               Pointwise::eager,
                               {spread, shares},
                               {this_.b_.new_gradient(this_.scores_)}});
    });
  }

  // The number of rows that each rank sends to each (token_dispatcher.py, preprocess).
  void gather(TensorId counts) {
    b_.enter(LayerPart::dispatch);
    if (plan_.ep > 1) {
      const double all = experts_ * plan_.ep;
      const TensorId gathered = b_.activation(name("gathered_counts"), all, kCountBytes);
      b_.forward({name("gathered_counts"),
                  Collective{CollectiveOp::all_gather, CommGroup::expert, all * kCountBytes},
                  {counts},
                  {gathered}});
      counts = gathered;
    }
    constexpr std::array kSums = {"rows_sent", "rows_of_ranks", "rows_received"};
    chain(kSums, counts, experts_);
  }

  BlockBuilder& b_;
  const Plan& plan_;
  TensorId scores_;
  double all_, experts_;
};

void choose_fused(BlockBuilder& b, TensorId scores, const Choices& to, KernelTensors reads) {
  b.forward({"top_k", Pointwise::top_k, std::move(reads), {to.weights, {to.experts, Slot::choices}}});
  b.undo([&b, scores, to] {
    b.backward_input({"top_k_backward",
                      Pointwise::top_k_backward,
                      {b.gradient_of(to.weights), scores, {to.experts, Slot::choices}},
                      {b.new_gradient(scores)}});
  });
}

// Scale of each expert, which multiplies the weights of tokens that chose it (transformers,
// modeling_gemma4.py, per_expert_scale).
TensorId scale_weights(BlockBuilder& b, const Experts& experts, const Choices& of) {
  const TensorId scales = b.parameter("expert_scales", static_cast<double>(experts.count));
  const TensorId scaled = b.activation("expert_weights_scaled", b[of.weights].elements, kScoreBytes);
  b.forward({"expert_scale", Pointwise::eager, {of.weights, of.experts, scales}, {scaled}});
  b.undo([&b, of, scales, scaled] {
    const TensorId gradient = b.gradient_of(scaled);
    b.backward_input({"expert_scale_backward",
                      Pointwise::eager,
                      {gradient, of.experts, scales},
                      {b.gradient_like(of.weights)}});
    b.backward_weight({"expert_scales_gradient",
                       Pointwise::eager,
                       {gradient, of.weights, of.experts},
                       {b.parameter_gradient(scales)}});
  });
  return scaled;
}

}  // namespace

Choices route(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input) {
  const Experts& experts = *model.experts;
  ColumnLinear router{"router", input};
  router.weight = b.parameter("router_weight", Shape::elements(shape.hidden, experts.count));
  if (experts.linear_bias)
    router.bias = b.parameter("router_linear_bias", static_cast<double>(experts.count));
  router.outputs = {{"expert_scores", experts.count}};
  Shape whole = shape;
  whole.quantized = false;  // scores are GEMMs in 16 bits, or fp32 (router_gating_linear)
  const TensorId scores = replicated_linear(b, whole, router).front();
  const auto chosen = static_cast<double>(shape.rows * experts.per_token);
  Choices to{b.activation("expert_weights", chosen, kScoreBytes),
             b.activation("expert_choices", chosen, kScoreBytes)};
  KernelTensors reads = {scores};
  if (experts.router_bias && !model.hashes_experts)
    reads.push_back(router_bias(b, model, to.experts), Slot::bias);
  if (plan.fused_router)
    choose_fused(b, scores, to, std::move(reads));
  else
    EagerRouter(b, plan, model, scores).choose(to, std::move(reads));
  if (host_asks(plan)) b.host_waits();
  if (experts.own_norms) to.weights = scale_weights(b, experts, to);
  return to;
}

}  // namespace rehearse
