#include "plan/recipe.h"
#include "plan/work.h"

namespace rehearse {

Kernel optimizer_kernel(double parameters, const Plan& plan, Block& scratch) {
  const StateBytes bytes = state_bytes(plan);
  const auto add = [&](const char* name, TensorRole role, double element_bytes) {
    scratch.tensors.push_back({name, role, parameters, element_bytes});
    return static_cast<TensorId>(scratch.tensors.size() - 1);
  };
  const double gradient_bytes = bytes.gradient_copy > 0 ? bytes.gradient_copy : bytes.gradient;
  const TensorId gradient = add("gradient", TensorRole::gradient, gradient_bytes);
  const TensorId mean = add("first_moment", TensorRole::state, bytes.moments / 2);
  const TensorId square = add("second_moment", TensorRole::state, bytes.moments / 2);
  const bool has_master = bytes.master > 0;
  const TensorId master = has_master ? add("master_weight", TensorRole::state, bytes.master) : TensorId{-1};
  const TensorId weight = add("weight", TensorRole::parameter, bytes.parameter);
  if (!has_master) return {"adam", Pointwise::adam, {gradient, mean, square, weight}, {mean, square, weight}};
  return {"adam", Pointwise::adam, {gradient, mean, square, master}, {mean, square, master, weight}};
}

}  // namespace rehearse
