#include "plan/work/expert_passes.h"

#include "plan/work/router.h"

namespace rehearse {

namespace {

// Two operations at once: one for the gate, one for the up projection.
constexpr std::int64_t kHalves = 2;

Kernel eager(const char* name, std::int64_t launches, std::vector<TensorId> reads, TensorId makes) {
  Kernel kernel{name, Pointwise::eager, std::move(reads), {makes}};
  kernel.launches = launches;
  return kernel;
}

void clamp_backward(BlockBuilder& b, TensorId rows, TensorId clamped) {
  constexpr double kMaskBytes = 1;
  const double n = b[rows].elements;
  const TensorId gradient = b.gradient_of(clamped);
  const TensorId below = b.scratch_gradient("experts_clamp_below", n, kMaskBytes);
  const TensorId within = b.scratch_gradient("experts_clamp_within", n, kMaskBytes);
  const TensorId masked = b.scratch_gradient("experts_clamp_masked", n);
  b.backward_input(eager("experts_clamp_below", kHalves, {rows}, below));
  // A comparison from below and a conjunction, each on half of the elements.
  b.backward_input(eager("experts_clamp_within", kHalves, {below, below}, within));
  b.backward_input(eager("experts_clamp_masked", kHalves, {gradient, within}, masked));
  b.backward_input(eager("experts_clamp_joined_backward", 1, {masked}, b.new_gradient(rows)));
}

class ExpertBias {
 public:
  ExpertBias(BlockBuilder& b, const Plan& plan, const ExpertRows& of, TensorId rows)
      : b_(b),
        of_(of),
        rows_(rows),
        elements_(b[rows].elements),
        wide_(of.weights >= 0 && plan.sends_rows_once()),
        bytes_(wide_ ? kScoreBytes : b.shape().element_bytes),
        bias_(b.expert_parameter("experts_down_bias", static_cast<double>(of.experts * b.shape().latent))) {}

  TensorId add() {
    TensorId added = bias_;
    if (of_.weights >= 0) added = forward("experts_bias_scaled", of_.experts, {bias_, of_.weights}, bytes_);
    const TensorId sum = forward("experts_bias_sum", of_.experts, {rows_, added}, bytes_);
    TensorId output = forward("experts_bias_joined", 1, {sum}, bytes_);
    if (wide_) output = forward("experts_bias_narrowed", 1, {output}, b_.shape().element_bytes);
    b_.undo([this_ = *this, output] { this_.back(output); });
    return output;
  }

 private:
  TensorId forward(const char* name, std::int64_t launches, std::vector<TensorId> reads, double bytes) {
    const TensorId output = b_.activation(name, elements_, bytes);
    b_.forward(eager(name, launches, std::move(reads), output));
    return output;
  }

  Kernel expert_by_expert(const char* name, std::vector<TensorId> reads, TensorId makes) const {
    return eager(name, of_.experts, std::move(reads), makes);
  }

  // The experts' gradients are views of the joined gradient. Those of the rows were split, so they are joined
  // again.
  void back(TensorId output) const {
    TensorId gradient = b_.gradient_of(output), of_rows = gradient;
    if (wide_) {
      const TensorId widened = b_.scratch_gradient("experts_bias_widened", elements_, bytes_);
      b_.backward_input(eager("experts_bias_widened", 1, {gradient}, widened));
      gradient = widened;
      of_rows = b_.scratch_gradient("experts_bias_sum_gradient", elements_);
      b_.backward_input(expert_by_expert("experts_bias_sum_backward", {gradient}, of_rows));
    }
    b_.backward_input(eager("experts_bias_split_backward", 1, {of_rows}, b_.new_gradient(rows_)));
    if (of_.weights >= 0) of_weights(gradient);
    of_bias(gradient);
  }

  void of_weights(TensorId gradient) const {
    const TensorId products = b_.scratch_gradient("experts_bias_weight_products", elements_, bytes_);
    b_.backward_input(expert_by_expert("experts_bias_weight_products", {gradient, bias_}, products));
    b_.backward_input(
        expert_by_expert("experts_bias_weight_sums", {products}, b_.gradient_like(of_.weights)));
  }

  void of_bias(TensorId gradient) const {
    TensorId products = gradient;
    if (of_.weights >= 0) {
      products = b_.scratch_gradient("experts_bias_products", elements_, bytes_);
      b_.backward_weight(expert_by_expert("experts_bias_products", {gradient, of_.weights}, products));
    }
    Kernel sums = expert_by_expert("experts_down_bias_gradient", {products}, b_.parameter_gradient(bias_));
    sums.what = Pointwise::bias_gradient;
    b_.backward_weight(std::move(sums));
  }

  BlockBuilder& b_;
  ExpertRows of_;
  TensorId rows_;
  double elements_;
  bool wide_;
  double bytes_;
  TensorId bias_;
};

}  // namespace

TensorId clamp_gate_and_up(BlockBuilder& b, TensorId rows) {
  const double n = b[rows].elements;
  const TensorId parts = b.activation("experts_clamped_apart", n),
                 clamped = b.activation("experts_clamped", n);
  b.forward(eager("experts_clamp", kHalves, {rows}, parts));
  b.forward(eager("experts_clamp_joined", 1, {parts}, clamped));
  b.undo([&b, rows, clamped] { clamp_backward(b, rows, clamped); });
  return clamped;
}

TensorId add_expert_bias(BlockBuilder& b, const Plan& plan, const ExpertRows& of, TensorId rows) {
  return ExpertBias(b, plan, of, rows).add();
}

}  // namespace rehearse
