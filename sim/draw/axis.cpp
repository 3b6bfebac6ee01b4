#include "draw/axis.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rehearse::svg {

namespace {

// The smallest of 1, 2, 5 times a power of ten that is not below `value` > 0.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

std::vector<Window> choose_windows(double step_time_s, double op_s, double left, double width, double least,
                                   double between) {
  if (!(step_time_s > 0)) return {{0, 1, left, width}};
  const double half = (width - between) / 2;
  const double shown = op_s > 0 ? half / least * op_s : step_time_s;
  if (2 * shown >= step_time_s || op_s * width >= least * step_time_s) return {{0, step_time_s, left, width}};
  return {{0, shown, left, half}, {step_time_s - shown, step_time_s, left + half + between, half}};
}

TimeUnit unit_for(double step_time_s) {
  if (step_time_s >= 1) return {"s", 1};
  if (step_time_s >= 1e-3) return {"ms", 1e-3};
  return {"us", 1e-6};
}

std::vector<Tick> ticks(const Window& window, const TimeUnit& unit, double apart) {
  const double seconds_per_pixel = (window.end - window.begin) / window.width;
  const double step = round_up(seconds_per_pixel * apart / unit.seconds);
  if (!(step > 0) || !std::isfinite(step)) return {};
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
  std::vector<Tick> marks;
  const double first = std::ceil(window.begin / unit.seconds / step - 1e-9);
  const double most = 2 + window.width / apart;  // limit: doubles may be further apart than ticks
  for (int i = 0; i < most; ++i) {
    const double at = (first + i) * step;
    const double x = window.x(at * unit.seconds);
    if (!(x <= window.left + window.width + 0.01)) break;
    marks.push_back({x, fmt::format("{:.{}f}", at, decimals)});
  }
  return marks;
}

}  // namespace rehearse::svg
