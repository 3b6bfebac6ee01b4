// By which factor is the loss of an fp16 plan multiplied, so that its gradients neither vanish nor overflow?
//
// As in Megatron-LM (core/optimizer/grad_scaler.py): gradients are divided by the scale before the step. A
// step is skipped where a gradient on any rank is infinite or no number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"

namespace rehearse {

// Defaults and names are Megatron-LM's (core/optimizer/optimizer_config.py).
struct LossScaling {
  std::optional<double> loss_scale = {};  // static; else the scale adapts to overflows
  double initial_loss_scale = 4294967296;
  double min_loss_scale = 1;
  int loss_scale_window = 1000;  // steps in a row without overflow, after which the scale doubles
  int hysteresis = 2;            // overflows since it doubled, from which on each halves it
};

bool scales_loss(const Plan& plan);

// Violation::pointer is the field's name. Empty when all is legal.
std::vector<Violation> broken_rules(const LossScaling& scaling);

class LossScale {
 public:
  explicit LossScale(const LossScaling& scaling);

  float value() const { return static_cast<float>(value_); }
  // After a step.
  void update(bool overflowed);

 private:
  LossScaling scaling_;
  double value_;
  int good_steps_ = 0, overflows_left_;
};

}  // namespace rehearse
