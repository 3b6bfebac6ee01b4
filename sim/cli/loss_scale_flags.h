// Which flags set the loss scaling of fp16 plans, and how is it reported after a run?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "execute/execute.h"
#include "execute/loss_scale.h"

namespace rehearse {

// Values as given; Megatron-LM's names.
struct LossScaleFlags {
  std::optional<std::string> loss_scale;  // "dynamic" or a number
  std::optional<double> initial_loss_scale, min_loss_scale;
  std::optional<int> loss_scale_window, hysteresis;
};
std::vector<VerbOption> loss_scale_options(LossScaleFlags& flags);

// InputError when a value is out of range, or other flags make a given flag meaningless.
LossScaling loss_scaling_of(const LossScaleFlags& flags, const Plan& plan);

// "loss scale 65536 after the last step; 3 of 7 steps skipped", with a line end; "" without loss scaling.
std::string loss_scale_line(const Execution& execution);

// A warning for readers of the times after `warmup` steps; "" where no counted step was skipped.
std::string skipped_warning(const Execution& execution, int warmup);

}  // namespace rehearse
