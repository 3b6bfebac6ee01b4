#include "draw/markers.h"

#include <array>

namespace rehearse::svg {

namespace {

// Around (0, 0): circle, square, triangle, diamond, triangle downwards.
constexpr std::array kShapes = {"m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z", "m-4-4h8v8h-8z",
                                "m0-5.5l5 9h-10z", "m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z", "m0 5.5l5-9h-10z"};

std::string title_of(const std::string& hint) {
  return hint.empty() ? "" : "<title>" + escape(hint) + "</title>";
}

}  // namespace

void put_marker(Canvas& canvas, double x, double y, std::size_t style, bool filled, const std::string& hint) {
  const char* colour = line_colour(style);
  canvas.put(R"(<path d="M{} {}{}" fill="{}" stroke="{}" stroke-width="1.5">{}</path>)", number(x), number(y),
             kShapes[style % kShapes.size()], filled ? colour : "#fff", filled ? "#fff" : colour,
             title_of(hint));
}

void put_point(Canvas& canvas, double x, double y, std::size_t style, const std::string& hint) {
  canvas.put(
      R"svg(<path transform="translate({} {}) scale(.7)" d="{}" fill="{}" fill-opacity="0.7">{}</path>)svg",
      number(x), number(y), kShapes[style % kShapes.size()], line_colour(style), title_of(hint));
}

void put_cross(Canvas& canvas, double x, double y, const std::string& hint) {
  canvas.put(
      R"(<path d="M{} {}m-4.5-4.5l9 9m0-9l-9 9" fill="none" stroke="#b00020" stroke-width="2">{}</path>)",
      number(x), number(y), title_of(hint));
}

}  // namespace rehearse::svg
