// How is a picture assembled? From elements in sequence, between a common head and end.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "draw/text.h"

namespace rehearse::svg {

enum class Anchor { start, middle, end };

class Canvas {
 public:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    body_ += fmt::format(format, std::forward<Args>(args)...);
    body_ += '\n';
  }

  // `more`: additional attributes, each after a space.
  void text(double x, double y, double size, const std::string& words, Anchor anchor = Anchor::start,
            const char* more = "");

  // Drawn over the existing elements.
  void add(const Canvas& other) { body_ += other.body_; }

  // Text that reads upwards, around (x, y).
  void upright_text(double x, double y, double size, const std::string& words);

  // Title and fixed settings, from the upper edge down, in lines of `width`; returns their lower end.
  double heading(double left, double width, const std::string& title, const std::string& held);

  // The whole picture on white. It uses presentation attributes only, so that it also works in a page whose
  // policy forbids inline styles. `head`: invisible elements after the title.
  std::string finish(double width, double height, const std::string& title,
                     const std::string& head = "") const;

 private:
  std::string body_;
};

// A legend of coloured boxes in rows that wrap at `right`. Each entry is a box and its meaning.
class Swatches {
 public:
  Swatches(Canvas& canvas, double left, double right, double y, double zoom = 1)
      : canvas_(canvas), left_(left), right_(right), x_(left), y_(y), zoom_(zoom) {}

  // `height` of the box, centred on the letters.
  void add(const std::string& fill, const std::string& meaning, double height = 12);
  double y() const { return y_; }  // the baseline of the last row

 private:
  Canvas& canvas_;
  double left_, right_, x_, y_, zoom_;
};

// Okabe and Ito's (jfly.uni-koeln.de/color, 2008) without the yellow, which is too light for lines. Colours
// repeat after the eighth.
const char* line_colour(std::size_t index);

}  // namespace rehearse::svg
