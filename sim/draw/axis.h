// Which part of an iteration is drawn, where does a moment lie on the page, and which ticks say so?
#pragma once

#include <string>
#include <vector>

namespace rehearse::svg {

// A stretch of time and the stretch of the page that shows it.
struct Window {
  double begin = 0, end = 0;   // seconds
  double left = 0, width = 0;  // pixels
  double x(double time) const { return left + (time - begin) / (end - begin) * width; }
};

// The whole iteration when an op of `op_s` seconds is then at least `least` pixels wide; else its first and
// its last part at that scale, `between` pixels apart. Never empty; each window is longer than zero.
std::vector<Window> choose_windows(double step_time_s, double op_s, double left, double width, double least,
                                   double between);

// Marks at round times of a window about `apart` pixels from each other, labelled in `unit`.
struct Tick {
  double x = 0;
  std::string label;
};
struct TimeUnit {
  std::string name;  // "s", "ms", "us"
  double seconds = 1;
};
TimeUnit unit_for(double step_time_s);
// None where the window is empty or too long for its numbers.
std::vector<Tick> ticks(const Window& window, const TimeUnit& unit, double apart);

}  // namespace rehearse::svg
