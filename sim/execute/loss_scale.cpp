#include "execute/loss_scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

constexpr double kGrowth = 2, kBackoff = 0.5;  // Megatron-LM, core/optimizer/__init__.py

// An fp32 number with an inverse, neither of them subnormal.
constexpr double kMin = 0x1p-126, kMax = 0x1p126;

}  // namespace

bool scales_loss(const Plan& plan) {
  return plan.precision == Precision::fp16;
}

std::vector<Violation> broken_rules(const LossScaling& scaling) {
  std::vector<Violation> found;
  const auto within = [&](const char* field, double value) {
    if (value >= kMin && value <= kMax) return;
    found.push_back({"", field, "must be above 0, with an inverse in fp32",
                     fmt::format("{} = {}", field, value),
                     std::isnan(value) ? "1" : fmt::format("{}", std::clamp(value, kMin, kMax))});
  };
  const auto at_least_one = [&](const char* field, int value) {
    if (value < 1)
      found.push_back({"", field, "must be at least 1", fmt::format("{} = {}", field, value), "1"});
  };
  if (scaling.loss_scale) within("loss_scale", *scaling.loss_scale);
  within("initial_loss_scale", scaling.initial_loss_scale);
  within("min_loss_scale", scaling.min_loss_scale);
  if (scaling.min_loss_scale > scaling.initial_loss_scale)
    found.push_back({"", "min_loss_scale", "must not be above the initial loss scale",
                     fmt::format("min_loss_scale = {}, initial_loss_scale = {}", scaling.min_loss_scale,
                                 scaling.initial_loss_scale),
                     fmt::format("{}", scaling.initial_loss_scale)});
  at_least_one("loss_scale_window", scaling.loss_scale_window);
  at_least_one("hysteresis", scaling.hysteresis);
  return found;
}

LossScale::LossScale(const LossScaling& scaling)
    : scaling_(scaling),
      value_(scaling.loss_scale.value_or(scaling.initial_loss_scale)),
      overflows_left_(scaling.hysteresis) {}

void LossScale::update(bool overflowed) {
  if (scaling_.loss_scale) return;
  if (overflowed) {
    good_steps_ = 0;
    overflows_left_ = std::max(0, overflows_left_ - 1);
    if (overflows_left_ == 0) value_ = std::max(value_ * kBackoff, scaling_.min_loss_scale);
  } else if (++good_steps_ == scaling_.loss_scale_window) {
    good_steps_ = 0;
    overflows_left_ = scaling_.hysteresis;
    value_ = std::min(value_ * kGrowth, kMax);
  }
}

}  // namespace rehearse
