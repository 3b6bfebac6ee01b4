// Which settings do several frameworks share?
#pragma once

#include "plan/frameworks/traits.h"
#include "plan/plan.h"

namespace rehearse {

// Precision of gradients on the wire: that of the parameters, or bf16 for quantized plans.
inline Precision wire_precision(const Plan& plan) {
  return is_quantized(plan.precision) ? Precision::bf16 : plan.precision;
}

inline bool is_mixed(const Plan& plan) {
  return plan.precision != Precision::fp32;
}

template <auto Field>
void add_off(const char* key, const Plan& plan, bool matters, std::vector<OwnDefault>& found) {
  if (plan.*Field && matters) found.push_back({key, 1, 0, true, [](Plan& other) { other.*Field = false; }});
}

inline void add_clipping(const Plan& plan, std::vector<OwnDefault>& found) {
  if (plan.clip_grad != 1 && plan.sync_step)
    found.push_back({"clip_grad", plan.clip_grad, 1, false, [](Plan& other) { other.clip_grad = 1; }});
}

}  // namespace rehearse
