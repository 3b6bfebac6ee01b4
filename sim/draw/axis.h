// Which part of an iteration is drawn, at which x is a time, and where are the ticks?
#pragma once

#include <string>
#include <vector>

namespace rehearse::svg {

// A time range and its horizontal range on the page.
struct Window {
  double begin = 0, end = 0;   // seconds
  double left = 0, width = 0;  // pixels
  double x(double time) const { return left + (time - begin) / (end - begin) * width; }
};

// The whole iteration, if an op of `op_s` seconds is then at least `least` pixels wide. Otherwise its first
// and its last part at that scale, `between` pixels apart. Never empty; each window is longer than zero.
std::vector<Window> choose_windows(double step_time_s, double op_s, double left, double width, double least,
                                   double between);

// Marks at round times of a window, about `apart` pixels apart, labelled in `unit`.
struct Tick {
  double x = 0;
  std::string label;
};
struct TimeUnit {
  std::string name;  // "s", "ms", "us"
  double seconds = 1;
};
TimeUnit unit_for(double step_time_s);
// None where the window is empty or too long for double precision.
std::vector<Tick> ticks(const Window& window, const TimeUnit& unit, double apart);

}  // namespace rehearse::svg
