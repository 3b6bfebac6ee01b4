#include "cost/kernel_list.h"

#include <map>

#include "cost/pricing.h"

namespace rehearse {

namespace {

bool is_of_experts(const Kernel& kernel) {
  if (const auto* collective = std::get_if<Collective>(&kernel.what))
    return collective->group == CommGroup::expert;
  const auto* gemm = std::get_if<Gemm>(&kernel.what);
  return gemm != nullptr && gemm->of_experts;
}

void add(std::vector<KernelTime>& list, Pricing& pricing, const Block& block,
         const std::vector<Kernel>& kernels, KernelPass pass, double runs) {
  for (const Kernel& kernel : kernels) {
    const Estimate time = pricing.time_of(block, kernel);
    const auto* collective = std::get_if<Collective>(&kernel.what);
    const double bytes = collective != nullptr ? collective->bytes * static_cast<double>(collective->calls)
                                               : block.bytes_moved(kernel);
    list.push_back({block.name, kernel.name, pass, runs, time.seconds, flops(kernel), bytes,
                    collective != nullptr, is_of_experts(kernel), time.extrapolated});
  }
}

// How often a stage runs each of its blocks. Layers of two kinds may alternate.
std::map<int, std::int64_t> repeats_of(const std::vector<Repeated>& parts) {
  std::map<int, std::int64_t> repeats;
  for (const Repeated& part : parts) repeats[part.block] += part.repeats;
  return repeats;
}

}  // namespace

std::vector<KernelTime> kernel_list(const Work& work, int stage, const Plan& plan, const Cluster& cluster,
                                    const Profile& profile) {
  KernelTimes times(profile, cluster.gpu, to_string(plan.precision));
  Pricing pricing(plan, cluster, profile, times);
  std::vector<KernelTime> list;
  for (const auto& [index, repeats] : repeats_of(work.parts[static_cast<std::size_t>(stage)])) {
    const Block& block = work.blocks[static_cast<std::size_t>(index)];
    const auto runs = static_cast<double>(repeats);
    add(list, pricing, block, block.forward, KernelPass::forward, runs);
    add(list, pricing, block, block.recompute, KernelPass::recompute, runs);
    add(list, pricing, block, block.backward_input, KernelPass::backward, runs);
    add(list, pricing, block, block.backward_weight, KernelPass::backward, runs);
  }
  return list;
}

}  // namespace rehearse
