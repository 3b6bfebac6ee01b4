#include "cost/host_launches.h"

#include <algorithm>

namespace rehearse {

namespace {

// Seconds from one GEMM of nvte_multi_tensor_gemm to the next (calibrate/data/misc/host_launch.json,
// products).
constexpr double kNextProduct = 267e-6 / 8;
// Seconds from one quantized tensor to the next (the same file, casts).
constexpr double kNextCast = 9e-6;
// Seconds of a Triton kernel behind its autotuner. Five forward kernels of a scan take at least 0.29 ms,
// however short (calibrate/data/misc/state_space.json).
constexpr double kTriton = 290e-6 / 5;

double launch_s(const Profile& profile, const Kernel& kernel) {
  if (std::holds_alternative<Collective>(kernel.what)) return profile.host_collective_s;
  if (profile.host_launch_s == 0) return 0;
  if (profile.measurement) return static_cast<double>(kernel.launches) * profile.host_launch_s;
  if (std::holds_alternative<Scan>(kernel.what)) return static_cast<double>(kernel.launches) * kTriton;
  const double next = std::holds_alternative<Gemm>(kernel.what) ? kNextProduct : kNextCast;
  return profile.host_launch_s + static_cast<double>(kernel.launches - 1) * next;
}

// Launch time of the kernel at `at` in a list; 0 where the kernel before it opened the same graph.
double launch_s(const Profile& profile, const std::vector<Kernel>& kernels, const GraphedParts& graphed,
                std::size_t at) {
  const auto held = [&](std::size_t i) { return graphed[static_cast<std::size_t>(kernels[i].part)]; };
  if (!held(at)) return launch_s(profile, kernels[at]);
  return at > 0 && held(at - 1) ? 0 : profile.host_launch_s;
}

}  // namespace

double launches_s(const Profile& profile, const std::vector<Kernel>& kernels, const GraphedParts& graphed) {
  double seconds = 0;
  for (std::size_t at = 0; at < kernels.size(); ++at) seconds += launch_s(profile, kernels, graphed, at);
  return seconds;
}

double stalls_s(const Profile& profile, const std::vector<Kernel>& kernels,
                const std::vector<double>& seconds, const GraphedParts& graphed) {
  const auto first =
      std::find_if(kernels.begin(), kernels.end(), [](const Kernel& kernel) { return kernel.host_waits; });
  if (first == kernels.end()) return 0;
  // Since the host last waited: the end of its launches, the end of the GPU's work, and the busy time of the
  // GPU.
  double host = 0, gpu = 0, busy = 0, idle = 0;
  for (std::size_t i = 1; i <= kernels.size(); ++i) {
    const std::size_t at = (static_cast<std::size_t>(first - kernels.begin()) + i) % kernels.size();
    host += launch_s(profile, kernels, graphed, at);
    gpu = std::max(gpu, host) + seconds[at];
    busy += seconds[at];
    if (!kernels[at].host_waits) continue;
    idle += gpu - busy;
    host = gpu = busy = 0;
  }
  return idle;
}

double accumulations_s(const Profile& profile, const Block& block) {
  const auto parameters = std::count_if(block.tensors.begin(), block.tensors.end(), [](const Tensor& tensor) {
    return tensor.role == TensorRole::parameter || tensor.role == TensorRole::tied;
  });
  return profile.measurement ? 0 : static_cast<double>(parameters) * profile.host_launch_s;
}

}  // namespace rehearse
