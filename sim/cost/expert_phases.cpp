// How long are the expert all-to-alls, and the kernels between them, for passes that take turns?
#include <algorithm>
#include <utility>

#include "cost/pricing.h"

namespace rehearse {

namespace {

bool is_product_of_experts(const Kernel& kernel) {
  const auto* gemm = std::get_if<Gemm>(&kernel.what);
  return gemm != nullptr && gemm->of_experts;
}

ExpertPhases repeated(double repeats, const ExpertPhases& layer) {
  return {repeats * layer.layers,   repeats * layer.attention, repeats * layer.experts,
          repeats * layer.dispatch, repeats * layer.combine,   layer.taken};
}

}  // namespace

void Pricing::add_phases(const Block& block, double repeats, StageTimes& stage) {
  const ExpertPhases forward = phases(block, block.forward);
  if (forward.layers == 0) return;
  ExpertPhases backward = phases(block, block.backward_input);
  std::swap(backward.dispatch, backward.combine);  // backward runs them in the opposite order
  for (const Kernel& kernel : block.recompute) backward.attention += time_of(block, kernel).seconds;
  for (const Kernel& kernel : block.backward_weight)
    (is_product_of_experts(kernel) ? backward.experts : backward.attention) += time_of(block, kernel).seconds;
  stage.forward_phases += repeated(repeats, forward);
  stage.backward_phases += repeated(repeats, backward);
}

ExpertPhases Pricing::phases(const Block& block, const std::vector<Kernel>& kernels) {
  const auto product = std::ranges::find_if(kernels, is_product_of_experts);
  if (product == kernels.end()) return {};
  ExpertPhases phases;
  phases.layers = 1;
  bool has_sent = false, has_returned = false;
  for (auto kernel = kernels.begin(); kernel != kernels.end(); ++kernel) {
    const double seconds = time_of(block, *kernel).seconds - hidden(block, *kernel, kernels).total();
    const auto* collective = std::get_if<Collective>(&kernel->what);
    if (collective != nullptr && collective->group == CommGroup::expert) {
      (kernel < product ? phases.dispatch : phases.combine) += seconds;
      (kernel < product ? has_sent : has_returned) = true;
      phases.taken = std::max(phases.taken, lost(*collective, *product, call_time(*collective).total()));
    } else {
      (has_sent && !has_returned ? phases.experts : phases.attention) += seconds;
    }
  }
  return phases;
}

}  // namespace rehearse
