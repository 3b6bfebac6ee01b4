// Which layers are on which stage, and which pipeline rank runs it?
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

struct Stage {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
  bool embedding = false;  // the first stage also looks tokens up
  bool head = false;       // the last stage also computes logits and loss
};

// plan.stages() stages in model order; by plan.layers_per_stage where given, else evenly.
// Requires broken_rules() to be empty.
std::vector<Stage> split_layers(const Model& model, const Plan& plan);

// Stage s runs as chunk s / pp. It loops on pipeline rank s % pp (Narayanan et al. 2021, section 2.2). In a
// V-shaped schedule, chunk 1 runs on the way back (Qi et al. 2024, section 3.2).
inline int pipeline_rank_of(int stage, const Plan& plan) {
  const bool back = is_v_shaped(plan.schedule) && stage >= plan.pp;
  return back ? 2 * plan.pp - 1 - stage : stage % plan.pp;
}

}  // namespace rehearse
