#include "cost/host_launches.h"

#include <algorithm>

namespace rehearse {

double launches_s(const Profile& profile, const std::vector<Kernel>& kernels) {
  const auto collectives = std::count_if(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
    return std::holds_alternative<Collective>(kernel.what);
  });
  const auto others = static_cast<double>(kernels.size()) - static_cast<double>(collectives);
  return others * profile.host_launch_s + static_cast<double>(collectives) * profile.host_collective_s;
}

double accumulations_s(const Profile& profile, const Block& block) {
  const auto parameters = std::count_if(block.tensors.begin(), block.tensors.end(), [](const Tensor& tensor) {
    return tensor.role == TensorRole::parameter || tensor.role == TensorRole::tied;
  });
  return static_cast<double>(parameters) * profile.host_launch_s;
}

}  // namespace rehearse
