#include "cli/loss_scale_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace rehearse {

namespace {

constexpr double kOftenGood = 65536;  // initial value of PyTorch's GradScaler and DeepSpeed

[[noreturn]] void refuse(const std::string& flag, const std::string& rule, const std::string& values,
                         const std::string& nearest) {
  throw InputError({"command line", flag, rule, values, nearest});
}

// "dynamic" has none.
std::optional<double> static_scale(const std::string& text) {
  if (text == "dynamic") return {};
  double scale = 0;
  const char* end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, scale);
  if (error != std::errc() || read_to != end)
    refuse("--loss-scale", "is dynamic or a number", "found " + text,
           fmt::format("dynamic, or {}", kOftenGood));
  return scale;
}

std::string flag_of(std::string field) {
  std::ranges::replace(field, '_', '-');
  return "--" + field;
}

std::vector<std::string> given(const LossScaleFlags& flags) {
  std::vector<std::string> names;
  const auto note = [&](bool is_given, const char* field) {
    if (is_given) names.push_back(flag_of(field));
  };
  note(flags.initial_loss_scale.has_value(), "initial_loss_scale");
  note(flags.min_loss_scale.has_value(), "min_loss_scale");
  note(flags.loss_scale_window.has_value(), "loss_scale_window");
  note(flags.hysteresis.has_value(), "hysteresis");
  return names;
}

}  // namespace

std::vector<VerbOption> loss_scale_options(LossScaleFlags& flags) {
  return {{{"--loss-scale"},
           &flags.loss_scale,
           "loss scale of precision fp16: dynamic (default) or a number; steps whose gradients overflow are "
           "skipped",
           "dynamic|X"},
          {{"--initial-loss-scale"},
           &flags.initial_loss_scale,
           "first value of a dynamic loss scale (2^32)",
           "X"},
          {{"--min-loss-scale"}, &flags.min_loss_scale, "minimum of a dynamic loss scale (1)", "X"},
          {{"--loss-scale-window"},
           &flags.loss_scale_window,
           "steps without overflow before the loss scale is doubled (1000)",
           "N"},
          {{"--hysteresis"},
           &flags.hysteresis,
           "overflows after a doubling before the loss scale is halved (2)",
           "N"}};
}

LossScaling loss_scaling_of(const LossScaleFlags& flags, const Plan& plan) {
  std::vector<std::string> all = given(flags);
  const std::vector<std::string> of_dynamic = all;
  if (flags.loss_scale) all.insert(all.begin(), "--loss-scale");
  if (!all.empty() && !scales_loss(plan))
    refuse(all.front(), "only the loss of plans in fp16 is scaled",
           fmt::format("precision = {}", to_string(plan.precision)),
           fmt::format("--precision fp16, or no {}", join(all)));
  LossScaling scaling;
  if (flags.loss_scale) scaling.loss_scale = static_scale(*flags.loss_scale);
  if (scaling.loss_scale && !of_dynamic.empty())
    refuse(of_dynamic.front(), "belongs to a dynamic loss scale", "--loss-scale " + *flags.loss_scale,
           fmt::format("--loss-scale dynamic, or no {}", join(of_dynamic)));
  scaling.initial_loss_scale = flags.initial_loss_scale.value_or(scaling.initial_loss_scale);
  scaling.min_loss_scale = flags.min_loss_scale.value_or(scaling.min_loss_scale);
  scaling.loss_scale_window = flags.loss_scale_window.value_or(scaling.loss_scale_window);
  scaling.hysteresis = flags.hysteresis.value_or(scaling.hysteresis);
  std::vector<Violation> found = broken_rules(scaling);
  for (Violation& violation : found) {
    violation.file = "command line";
    violation.pointer = flag_of(violation.pointer);
  }
  if (!found.empty()) throw InputError(std::move(found));
  return scaling;
}

std::string loss_scale_line(const Execution& execution) {
  if (execution.loss_scales.empty()) return "";
  return fmt::format("loss scale {} after the last step; {} of {} steps skipped\n",
                     execution.loss_scales.back(), execution.skipped_steps.size(), execution.losses.size());
}

std::string skipped_warning(const Execution& execution, int warmup) {
  const auto counted =
      std::ranges::count_if(execution.skipped_steps, [&](int step) { return step >= warmup; });
  if (counted == 0) return "";
  return fmt::format(
      "{} of {} measured steps were skipped because gradients overflowed: the optimizer changed nothing in "
      "them; a loss scale of {} overflows less",
      counted, execution.step_times_s.size(), std::min(execution.loss_scales.back(), kOftenGood));
}

}  // namespace rehearse
