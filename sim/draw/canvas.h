// What does a picture consist of? Elements one after the other, between a head and an end that all share.
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

  // `more`: further attributes, each after a space.
  void text(double x, double y, double size, const std::string& words, Anchor anchor = Anchor::start,
            const char* more = "");

  // On top of what is there.
  void add(const Canvas& other) { body_ += other.body_; }

  // Read from the lower edge up, around (x, y).
  void upright_text(double x, double y, double size, const std::string& words);

  // Title and what was held fixed, from the upper edge down, in lines of `width`; returns where they end.
  double heading(double left, double width, const std::string& title, const std::string& held);

  // The whole picture on white; presentation attributes only, so that it also stands in a page whose policy
  // forbids inline styles. `head`: elements after the title, which nobody sees by themselves.
  std::string finish(double width, double height, const std::string& title,
                     const std::string& head = "") const;

 private:
  std::string body_;
};

// A row of the legend's coloured boxes, which breaks at `right`: each entry is a box and its meaning.
class Swatches {
 public:
  Swatches(Canvas& canvas, double left, double right, double y, double zoom = 1)
      : canvas_(canvas), left_(left), right_(right), x_(left), y_(y), zoom_(zoom) {}

  // `height` of the box, around the middle of the letters.
  void add(const std::string& fill, const std::string& meaning, double height = 12);
  double y() const { return y_; }  // the baseline of the last row

 private:
  Canvas& canvas_;
  double left_, right_, x_, y_, zoom_;
};

// Okabe and Ito's (jfly.uni-koeln.de/color, 2008) without the yellow, which is too light for lines. Beyond
// the eighth they come again.
const char* line_colour(std::size_t index);

}  // namespace rehearse::svg
