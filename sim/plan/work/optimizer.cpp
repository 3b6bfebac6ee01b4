#include "plan/recipe.h"
#include "plan/work.h"

namespace rehearse {

namespace {

// One number each for all parameters: the sum of the gradients' squares, and the factor of the gradients.
TensorId add_clipping(const Plan& plan, TensorId gradient, Block& scratch, std::vector<Kernel>& kernels) {
  constexpr double kBytes = 4;
  const auto add = [&](const char* name) {
    scratch.tensors.push_back({name, TensorRole::state, 1, kBytes});
    return static_cast<TensorId>(scratch.tensors.size() - 1);
  };
  const TensorId squares = add("squares"), scale = add("scale");
  kernels.push_back({"square_sum", Pointwise::square_sum, {gradient}, {squares}});
  if (plan.gpus() > 1) {
    const Collective sum{CollectiveOp::all_reduce, CommGroup::world, kBytes};
    kernels.push_back({"norm_all_reduce", sum, {squares}, {squares}});
  }
  kernels.push_back({"clip_scale", Pointwise::clip_scale, {squares}, {scale}});
  return scale;
}

// One kernel for each operation of torch.optim.AdamW (torch/optim/adamw.py): 80 bytes an element in fp32.
struct AdamTensors {
  TensorId gradient = -1, mean = -1, square = -1, weight = -1, scale = -1;
};
void add_eager_adam(const AdamTensors& of, double parameters, Block& scratch, std::vector<Kernel>& kernels) {
  constexpr double kFp32Bytes = 4;
  scratch.tensors.push_back({"denominator", TensorRole::state, parameters, kFp32Bytes});
  const auto denominator = static_cast<TensorId>(scratch.tensors.size() - 1);
  const auto add = [&](const char* name, std::vector<TensorId> reads, TensorId writes) {
    kernels.push_back({name, Pointwise::eager, std::move(reads), {writes}});
  };
  if (of.scale >= 0) add("clip", {of.gradient, of.scale}, of.gradient);
  add("weight_decay", {of.weight}, of.weight);
  add("mean", {of.mean, of.gradient}, of.mean);
  add("square_decay", {of.square}, of.square);
  add("square", {of.square, of.gradient}, of.square);
  add("root", {of.square}, denominator);
  add("bias_correction", {denominator}, denominator);
  add("epsilon", {denominator}, denominator);
  add("step", {of.weight, of.mean, denominator}, of.weight);
}

// A separate optimizer step reads wide gradients, copied from the narrow ones if these are kept.
double stepped_gradient_bytes(const Plan& plan) {
  const StateBytes bytes = state_bytes(plan);
  if (!plan.fused_step && bytes.master > 0) return bytes.master;
  return bytes.gradient_copy > 0 ? bytes.gradient_copy : bytes.gradient;
}

// Passes before an Adam that does nothing else: those of Megatron-LM's Float16OptimizerWithFloat16Params
// (megatron/optimizer/optimizer.py, _copy_model_grads_to_main_grads, _unscale_main_grads_and_check_for_nan)
// and of clip_grads.py.
void add_gradient_passes(const Plan& plan, TensorId gradient, Block& scratch, std::vector<Kernel>& kernels) {
  const Tensor stepped = scratch.tensors[static_cast<std::size_t>(gradient)];
  const double kept = state_bytes(plan).gradient;
  if (kept < stepped.element_bytes) {
    scratch.tensors.push_back({"kept_gradient", TensorRole::gradient, stepped.elements, kept});
    const auto narrow = static_cast<TensorId>(scratch.tensors.size() - 1);
    kernels.push_back({"gradient_copy", Pointwise::eager, {narrow}, {gradient}});
  }
  if (plan.precision == Precision::fp16)
    kernels.push_back({"unscale", Pointwise::eager, {gradient}, {gradient}});
  if (!(plan.clip_grad > 0)) return;
  const TensorId scale = add_clipping(plan, gradient, scratch, kernels);
  kernels.push_back({"clip", Pointwise::eager, {gradient, scale}, {gradient}});
}

}  // namespace

std::vector<Kernel> clipping_kernels(double parameters, const Plan& plan, Block& scratch) {
  scratch.tensors.push_back({"gradient", TensorRole::gradient, parameters, stepped_gradient_bytes(plan)});
  std::vector<Kernel> kernels;
  if (plan.clip_grad > 0)
    add_clipping(plan, static_cast<TensorId>(scratch.tensors.size() - 1), scratch, kernels);
  return kernels;
}

std::vector<Kernel> optimizer_kernels(double parameters, const Plan& plan, Block& scratch) {
  const StateBytes bytes = state_bytes(plan);
  const auto add = [&](const char* name, TensorRole role, double element_bytes) {
    scratch.tensors.push_back({name, role, parameters, element_bytes});
    return static_cast<TensorId>(scratch.tensors.size() - 1);
  };
  const TensorId gradient = add("gradient", TensorRole::gradient, stepped_gradient_bytes(plan));
  scratch.tensors.back().use = TensorUse::stepped_gradient;
  const TensorId mean = add("first_moment", TensorRole::state, bytes.moments / 2);
  const TensorId square = add("second_moment", TensorRole::state, bytes.moments / 2);
  const bool has_master = bytes.master > 0;
  const TensorId master = has_master ? add("master_weight", TensorRole::state, bytes.master) : TensorId{-1};
  const TensorId weight = add("weight", TensorRole::parameter, bytes.parameter);
  std::vector<Kernel> kernels;
  TensorId scale = -1;
  if (!plan.fused_step)
    add_gradient_passes(plan, gradient, scratch, kernels);
  else if (plan.clip_grad > 0)
    scale = add_clipping(plan, gradient, scratch, kernels);
  const TensorId stepped = has_master ? master : weight;
  if (plan.fused_adam) {
    Kernel adam{"adam", Pointwise::adam, {gradient, mean, square, stepped}, {mean, square, stepped}};
    if (has_master && plan.fused_step) adam.writes.push_back(weight, Slot::weight);
    if (scale >= 0) adam.reads.push_back(scale, Slot::scale);
    kernels.push_back(std::move(adam));
  } else {
    add_eager_adam({gradient, mean, square, stepped, scale}, parameters, scratch, kernels);
  }
  if (has_master && !(plan.fused_adam && plan.fused_step))
    kernels.push_back({"weight_copy", Pointwise::eager, {master}, {weight}});
  return kernels;
}

}  // namespace rehearse
