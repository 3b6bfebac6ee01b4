// Where does a plan differ by default from the framework that it names?
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rehearse {

// A field of a scenario's plan that the framework sets otherwise where nobody tells it.
struct OwnDefault {
  const char* key;
  double planned = 0;  // 1 or 0 of a switch
  double own = 0;      // the framework's
  bool is_switch = true;
  void (*set)(Plan& plan);
};

// Of the fields in which `plan` and its framework's own defaults differ. Plans start from what a tuned launch
// has; frameworks from what runs everywhere:
//  megatron-core  neither sequence parallelism nor overlap of gradients; loss, permutation and router in
//                 kernels of their own; gradients clipped to 1 (megatron/training/arguments.py,
//                 core/transformer/transformer_config.py)
//  torchtitan     not compiled: rotary positions, activation and loss in kernels of their own; gradients
//                 clipped to 1 (v0.2.2, torchtitan/config/job_config.py)
//  deepspeed      gradients reduced after the backward pass below ZeRO-3 (runtime/zero/config.py,
//                 overlap_comm_valid); ZeRO-2 overlaps here always
std::vector<OwnDefault> own_defaults(const Plan& plan, const Model& model);

}  // namespace rehearse
