#include "plan/own_defaults.h"

namespace rehearse {

namespace {

template <bool Plan::*Field>
void add_off(const char* key, const Plan& plan, bool matters, std::vector<OwnDefault>& found) {
  if (plan.*Field && matters) found.push_back({key, 1, 0, true, [](Plan& other) { other.*Field = false; }});
}

void add_clipping(const Plan& plan, std::vector<OwnDefault>& found) {
  if (plan.clip_grad != 1 && plan.sync_step)
    found.push_back({"clip_grad", plan.clip_grad, 1, false, [](Plan& other) { other.clip_grad = 1; }});
}

}  // namespace

std::vector<OwnDefault> own_defaults(const Plan& plan, const Model& model) {
  std::vector<OwnDefault> found;
  const bool experts = model.experts.has_value(), overlaps = plan.zero < 2;
  switch (plan.framework) {
    case Framework::megatron_core:
      add_off<&Plan::sequence_parallel>("sequence_parallel", plan, plan.tp > 1 && plan.ep == 1, found);
      add_off<&Plan::overlap_grad_reduce>("overlap_grad_reduce", plan, overlaps && plan.dp * plan.cp > 1,
                                          found);
      add_off<&Plan::fused_cross_entropy>("fused_cross_entropy", plan, true, found);
      add_off<&Plan::fused_permute>("fused_permute", plan, experts, found);
      add_off<&Plan::fused_router>("fused_router", plan, experts, found);
      add_clipping(plan, found);
      break;
    case Framework::torchtitan:
      add_off<&Plan::fused_rotary>("fused_rotary", plan, true, found);
      add_off<&Plan::fused_activation>("fused_activation", plan, true, found);
      add_off<&Plan::fused_cross_entropy>("fused_cross_entropy", plan, true, found);
      add_clipping(plan, found);
      break;
    case Framework::deepspeed:
      add_off<&Plan::overlap_grad_reduce>("overlap_grad_reduce", plan, overlaps && plan.dp > 1, found);
      break;
    default:
      break;
  }
  return found;
}

}  // namespace rehearse
