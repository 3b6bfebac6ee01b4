#include "draw/text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.h"

namespace rehearse::svg {

namespace {

constexpr double kLetter = 0.56;  // of the font size

std::string_view entity(char character) {
  switch (character) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_size(text.substr(at));
    const std::string_view character = text.substr(at, length);
    const bool is_shown = length > 0 && !steers(character);
    const std::string_view replaced = !is_shown ? "?" : length == 1 ? entity(text[at]) : "";
    escaped += replaced.empty() ? character : replaced;
    at += length == 0 ? 1 : length;
  }
  return escaped;
}

std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string shorten(const std::string& text, std::size_t characters) {
  std::size_t count = 0;
  std::size_t cut = text.size();  // end of the last character that fits together with an ellipsis
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!begins_character(text[at])) continue;
    if (++count == characters) cut = at;
    if (count > characters) return text.substr(0, cut) + "\u2026";
  }
  return text;
}

std::vector<std::string> wrap(const std::string& text, std::size_t characters) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    at = space + 1;
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (line.size() + 1 + word.size() <= characters)
      line += ' ' + word;
    else
      lines.push_back(word);
  }
  return lines;
}

double text_width(std::string_view text, double font_size) {
  double characters = 0;
  for (const char byte : text) characters += begins_character(byte) ? 1 : 0;
  return kLetter * font_size * characters;
}

std::size_t letters_in(double pixels, double font_size) {
  return static_cast<std::size_t>(pixels / (kLetter * font_size));
}

}  // namespace rehearse::svg
