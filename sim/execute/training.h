// Which run is executed? The same Schedule and Work that are simulated, with the seed of all random numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "execute/loss_scale.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "schedule/schedule.h"

namespace rehearse {

struct Training {
  Model model;
  Plan plan;
  Work work;
  Schedule schedule;
  std::uint64_t seed = 0;         // of parameters, tokens and dropout
  float rate = 1e-3F;             // Adam's
  std::string text = {};          // whose bytes are the tokens; "": tokens are made from the seed
  LossScaling loss_scaling = {};  // of plans in fp16
};

// Violations of a legal plan that no rank can execute yet; empty when all of it can be executed.
std::vector<Violation> not_executable(const Model& model, const Plan& plan);

}  // namespace rehearse
