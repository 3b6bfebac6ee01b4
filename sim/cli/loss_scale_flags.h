// How does the user say by how much the loss of a plan in fp16 is scaled, and what is said of it after a run?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "execute/execute.h"
#include "execute/loss_scale.h"

namespace rehearse {

// As given; Megatron-LM's names.
struct LossScaleFlags {
  std::optional<std::string> loss_scale;  // "dynamic" or a number
  std::optional<double> initial_loss_scale, min_loss_scale;
  std::optional<int> loss_scale_window, hysteresis;
};
std::vector<VerbOption> loss_scale_options(LossScaleFlags& flags);

// InputError when a value is out of range, or flags are given beside others that leave them no meaning.
LossScaling loss_scaling_of(const LossScaleFlags& flags, const Plan& plan);

// "loss scale 65536 after the last step; 3 of 7 steps skipped", with the end of a line; "" where none is
// scaled.
std::string loss_scale_line(const Execution& execution);

// What a reader of the times of `warmup` and more steps must know; "" without skipped steps that are counted.
std::string skipped_warning(const Execution& execution, int warmup);

}  // namespace rehearse
