#include "plan/work/recompute.h"

#include "plan/frameworks/traits.h"

#include <algorithm>

namespace rehearse {

std::vector<LayerRun> layer_runs(const Plan& plan, std::int64_t layers) {
  const std::int64_t unit = plan.recompute_layers;
  std::vector<LayerRun> runs;
  const auto add = [&runs](LayerKind kind, std::int64_t count) {
    if (count > 0) runs.push_back({kind, count});
  };
  if (plan.recompute == Recompute::full && plan.recompute_method == RecomputeMethod::block) {
    add(LayerKind::planned, std::min(unit, layers));
    add(LayerKind::kept, layers - std::min(unit, layers));
  } else if (plan.recompute == Recompute::full && unit > 1) {
    for (std::int64_t first = 0; first < layers; first += unit) {
      add(LayerKind::planned, 1);
      add(LayerKind::joined, std::min(unit, layers - first) - 1);
    }
  } else {
    add(LayerKind::planned, layers);
  }
  return runs;
}

bool reruns(const Plan& plan, RecomputeModule module) {
  if (traits(plan).recomputes_norms && plan.recompute == Recompute::none)
    return module == RecomputeModule::layernorm;
  const std::vector<RecomputeModule>& modules = plan.recompute_modules;
  return plan.recompute == Recompute::selective &&
         std::find(modules.begin(), modules.end(), module) != modules.end();
}

bool reruns_ends(const Plan& plan) {
  return plan.recompute == Recompute::full && traits(plan).recomputes_ends;
}

void drop_unread_end(std::vector<Kernel>& rerun, const Block& block) {
  std::vector<bool> read(block.tensors.size());
  for (const auto* kernels : {&block.backward_input, &block.backward_weight})
    for (const Kernel& kernel : *kernels)
      for (const TensorId id : kernel.reads) read[static_cast<std::size_t>(id)] = true;
  const auto is_read = [&read](TensorId id) { return read[static_cast<std::size_t>(id)]; };
  while (!rerun.empty() && std::ranges::none_of(rerun.back().writes, is_read)) rerun.pop_back();
}

}  // namespace rehearse
