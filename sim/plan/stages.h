// Which layers lie on which stage, and which pipeline rank runs it.
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

// Stage s of a looping placement runs on pipeline rank s % pp as its chunk s / pp (Narayanan et al. 2021,
// section 2.2).
inline int pipeline_rank_of(int stage, int pp) {
  return stage % pp;
}

}  // namespace rehearse
