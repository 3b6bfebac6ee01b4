#include "plan/work.h"

namespace rehearse {

Kernel optimizer_kernel(double parameters, const Plan& plan, Block& scratch) {
  const auto add = [&](const char* name, TensorRole role, double element_bytes) {
    scratch.tensors.push_back({name, role, parameters, element_bytes});
    return static_cast<TensorId>(scratch.tensors.size() - 1);
  };
  const TensorId gradient = add("gradient", TensorRole::gradient, 4);
  const TensorId mean = add("first_moment", TensorRole::state, 4);
  const TensorId square = add("second_moment", TensorRole::state, 4);
  if (plan.precision == Precision::fp32) {
    const TensorId weight = add("weight", TensorRole::parameter, 4);
    return {"adam", Pointwise::adam, {gradient, mean, square, weight}, {mean, square, weight}};
  }
  const TensorId master = add("master_weight", TensorRole::state, 4);
  const TensorId weight = add("weight", TensorRole::parameter, 2);
  return {"adam", Pointwise::adam, {gradient, mean, square, master}, {mean, square, master, weight}};
}

}  // namespace rehearse
