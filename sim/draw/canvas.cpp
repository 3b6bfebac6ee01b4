#include "draw/canvas.h"

#include <array>

namespace rehearse::svg {

namespace {

const char* attribute(Anchor anchor) {
  switch (anchor) {
    case Anchor::start:
      return "";
    case Anchor::middle:
      return R"( text-anchor="middle")";
    case Anchor::end:
      return R"( text-anchor="end")";
  }
  return "";
}

}  // namespace

void Canvas::text(double x, double y, double size, const std::string& words, Anchor anchor,
                  const char* more) {
  put(R"(<text x="{}" y="{}" font-size="{}"{}{}>{}</text>)", number(x), number(y), number(size),
      attribute(anchor), more, escape(words));
}

void Canvas::upright_text(double x, double y, double size, const std::string& words) {
  put(R"svg(<text transform="translate({} {}) rotate(-90)" text-anchor="middle" font-size="{}">{}</text>)svg",
      number(x), number(y), number(size), escape(words));
}

double Canvas::heading(double left, double width, const std::string& title, const std::string& held) {
  constexpr double kTitle = 17, kHeld = 12.5;
  double y = 28;
  text(left, y, kTitle, shorten(title, letters_in(width, kTitle)), Anchor::start, R"( font-weight="bold")");
  y += 22;
  if (held.empty()) return y;
  for (const std::string& line : wrap(held, letters_in(width, kHeld))) {
    text(left, y, kHeld, line, Anchor::start, R"( fill="#444")");
    y += 17;
  }
  return y;
}

std::string Canvas::finish(double width, double height, const std::string& title,
                           const std::string& head) const {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" )"
      R"(font-family="Helvetica, Arial, sans-serif"><title>{2}</title>)"
      "\n{3}"
      R"(<rect width="{0}" height="{1}" fill="#fff"/>)"
      "\n{4}</svg>\n",
      number(width), number(height), escape(title), head, body_);
}

void Swatches::add(const std::string& fill, const std::string& meaning, double height) {
  constexpr double kBox = 18, kLetters = 12, kLine = 20;
  const double width = kBox + 6 + text_width(meaning, kLetters * zoom_) + 18;
  if (x_ > left_ && x_ + width > right_) {
    x_ = left_;
    y_ += kLine * zoom_;
  }
  canvas_.put(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}" stroke="#555" stroke-width="0.5"/>)",
              number(x_), number(y_ - 4 - height / 2), number(kBox), number(height), fill);
  canvas_.text(x_ + kBox + 6, y_, kLetters * zoom_, meaning);
  x_ += width;
}

const char* line_colour(std::size_t index) {
  constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#000000", "#777777"};
  return kColours[index % kColours.size()];
}

}  // namespace rehearse::svg
