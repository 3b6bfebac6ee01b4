#include "plan/work/grouped.h"

#include "plan/frameworks/traits.h"
#include "plan/work/blocks.h"
#include "plan/work/expert_passes.h"
#include "plan/work/quantise.h"

namespace rehearse {

namespace {

// With delayed scaling one kernel casts all experts' rows, with other recipes one kernel each
// (csrc/extensions/cast.cpp, multi_tensor_quantize_impl).
Shape of_experts(Shape shape, const Plan& plan, std::int64_t experts) {
  const bool apart = plan.fp8_scaling == Fp8Scaling::current || plan.fp8_scaling == Fp8Scaling::mx;
  if (apart && !plan.fused_experts) shape.quantized_apart = experts;
  return shape;
}

class GroupedMlp {
 public:
  GroupedMlp(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, const ExpertRows& of)
      : b_(b),
        shape_(of_experts(shape, plan, of.experts)),
        of_(of),
        has_bias_(model.experts->linear_bias),
        clamps_(model.experts->clamped),
        plan_(plan),
        width_(model.gated_mlp ? 2 * of.ffn : of.ffn),
        rows_vary_(plan.moe_capacity <= 0),
        reruns_activation_(reruns(plan, RecomputeModule::moe_act)),
        launches_(!traits(plan).groups_experts && !plan.fused_experts ? of.experts : 1) {}

  TensorId run() {
    const TensorId up = linear("experts_up", of_.rows, shape_.latent, width_, has_bias_, share_of_up());
    const std::size_t first = b_.forward_kernels();
    KernelTensors reads = {clamps_ ? clamp_gate_and_up(b_, up) : up};
    if (of_.weights >= 0) reads.push_back(of_.weights, Slot::row_weights);
    const TensorId activated =
        activate(b_, "experts_activation", reads, elements(of_.ffn), of_.ffn, rows_vary_);
    if (reruns_activation_) b_.rerun_from(first);
    const TensorId rows =
        linear("experts_down", activated, of_.ffn, shape_.latent, false, {.columns = of_.ffn});
    return has_bias_ ? add_expert_bias(b_, plan_, of_, rows) : rows;
  }

  TensorId run_fused() {
    const Layer up = layer("experts_up", shape_.latent, width_, has_bias_, share_of_up()),
                down = layer("experts_down", of_.ffn, shape_.latent, has_bias_, {.columns = of_.ffn});
    const Quantized operand = quantize_input(b_, shape_, "experts_up", of_.rows);
    const TensorId rows = b_.activation("experts_activated_fp8", elements(of_.ffn), 1);
    const TensorId columns = b_.activation("experts_activated_fp8_columns", elements(of_.ffn), 1);
    KernelTensors reads = {operand.rows, {up.weight, Slot::weight}},
                  reads_down = {rows, {down.weight, Slot::weight}};
    if (of_.weights >= 0) reads.push_back(of_.weights, Slot::row_weights);
    if (has_bias_) reads.push_back(up.bias, Slot::bias), reads_down.push_back(down.bias, Slot::bias);
    b_.forward({up.name, up.there, reads, {up.output, {rows, Slot::output}, {columns, Slot::columns}}});
    b_.forward({down.name, down.there, reads_down, {down.output}});
    b_.undo([&b = b_, shape = shape_, of = of_, up, down, operand, columns] {
      const QuantizedGradient gradient = quantize_gradient(b, shape, down.name, {b.gradient_of(down.output)});
      const double size = b[up.output].elements;
      const TensorId of_up = b.scratch_gradient("experts_up_gradient_fp8", size, 1);
      const TensorId of_up_columns = b.scratch_gradient("experts_up_gradient_fp8_columns", size, 1);
      KernelTensors needs = {gradient.rows.front(), {down.weight, Slot::weight}, {up.output, Slot::output}},
                    makes = {of_up, {of_up_columns, Slot::columns}};
      if (of.weights >= 0) {
        needs.push_back(of.weights, Slot::row_weights);
        makes.push_back(b.gradient_like(of.weights), Slot::row_weights);
      }
      b.backward_input({down.name + "_input_gradient", down.for_input, needs, makes});
      b.backward_input({up.name + "_input_gradient",
                        up.for_input,
                        {of_up, {up.weight, Slot::weight}},
                        {b.new_gradient(of.rows)}});
      weigh(b, down, gradient.columns.front(), columns);
      weigh(b, up, of_up_columns, operand.kept);
    });
    return down.output;
  }

 private:
  // A linear layer of all local experts, and its three GEMMs.
  struct Layer {
    std::string name;
    TensorId weight = -1, output = -1;
    TensorId bias = -1;  // added, and its gradient summed, by the GEMMs' own kernels; -1: none
    Gemm there, for_input, for_weight;
    std::int64_t launches = 1;  // of each GEMM
  };

  double elements(std::int64_t width) const {
    return static_cast<double>(of_.experts) * Shape::elements(of_.each, width);
  }

  Gemm product(std::int64_t m, std::int64_t n, std::int64_t k) const { return {m, n, k, of_.experts, true}; }

  // The host launches the GEMM for one expert after the other.
  static Kernel expert_by_expert(std::int64_t launches, Kernel product) {
    product.launches = launches;
    return product;
  }

  TensorId bias_of(const std::string& name, std::int64_t width) {
    return b_.expert_parameter(name + "_bias", static_cast<double>(of_.experts * width));
  }

  // Share of one expert: gate and up projection, or only the up projection.
  RankShare share_of_up() const {
    return {std::vector<std::int64_t>(static_cast<std::size_t>(width_ / of_.ffn), of_.ffn)};
  }

  Layer layer(const std::string& name, std::int64_t depth, std::int64_t width, bool adds_bias,
              RankShare share) {
    const auto weights = static_cast<double>(of_.experts) * Shape::elements(depth, width);
    const TensorId weight = b_.expert_parameter(name + "_weight", weights);
    b_.share_out(weight, std::move(share));
    return {name,
            weight,
            b_.activation(name + "_output", elements(width)),
            adds_bias ? bias_of(name, width) : TensorId{-1},
            product(of_.each, width, depth),
            b_.input_gradient(product(of_.each, depth, width)),
            b_.weight_gradient(product(width, depth, of_.each)),
            launches_};
  }

  static void weigh(BlockBuilder& b, const Layer& of, TensorId gradient, TensorId input) {
    KernelTensors makes = {b.parameter_gradient(of.weight)};
    if (of.bias >= 0) makes.push_back(b.parameter_gradient(of.bias), Slot::bias);
    b.backward_weight(expert_by_expert(
        of.launches, {of.name + "_weight_gradient", of.for_weight, {gradient, {input, Slot::input}}, makes}));
  }

  TensorId linear(const std::string& name, TensorId input, std::int64_t depth, std::int64_t width,
                  bool adds_bias, RankShare share) {
    const Layer of = layer(name, depth, width, adds_bias, std::move(share));
    const Quantized operand = quantize_input(b_, shape_, name, input);
    KernelTensors reads = {operand.rows, {of.weight, Slot::weight}};
    if (of.bias >= 0) reads.push_back(of.bias, Slot::bias);
    b_.forward(expert_by_expert(of.launches, {name, of.there, reads, {of.output}}));
    b_.undo([&b = b_, shape = shape_, of, input, operand] {
      const QuantizedGradient gradient = quantize_gradient(b, shape, of.name, {b.gradient_of(of.output)});
      b.backward_input(expert_by_expert(of.launches, {of.name + "_input_gradient",
                                                      of.for_input,
                                                      {gradient.rows.front(), {of.weight, Slot::weight}},
                                                      {b.new_gradient(input)}}));
      const TensorId columns = input_by_columns(b, shape, of.name, operand);
      weigh(b, of, gradient.columns.front(), columns);
    });
    return of.output;
  }

  BlockBuilder& b_;
  Shape shape_;
  ExpertRows of_;
  bool has_bias_, clamps_;
  const Plan& plan_;
  std::int64_t width_;  // of the activation's input
  bool rows_vary_;      // no capacity pads the rows
  bool reruns_activation_;
  std::int64_t launches_;
};

}  // namespace

TensorId run_experts(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape,
                     const ExpertRows& rows) {
  GroupedMlp mlp(b, model, plan, shape, rows);
  return plan.fused_experts ? mlp.run_fused() : mlp.run();
}

}  // namespace rehearse
