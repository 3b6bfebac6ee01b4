// How are text and numbers written into an SVG so that it stays well-formed, with the same bytes on every
// run?
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::svg {

// XML-escaped; invalid UTF-8 bytes and control characters become '?'.
std::string escape(std::string_view text);

// At most two decimals, no trailing zeros: "12.5", "3".
std::string number(double value);

// At most `characters` long; the last one is an ellipsis where text was cut off.
std::string shorten(const std::string& text, std::size_t characters);

// Lines of at most `characters` (single words may be longer), broken at spaces.
std::vector<std::string> wrap(const std::string& text, std::size_t characters);

// Width of a text in pixels; sans-serif letters are on average 0.56 of the font size wide.
double text_width(std::string_view text, double font_size);

// The number of such letters that fit in `pixels`.
std::size_t letters_in(double pixels, double font_size);

}  // namespace rehearse::svg
