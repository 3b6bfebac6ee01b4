#include "result/svg/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace rehearse::svg {

namespace {

constexpr double kLetter = 0.56;  // of the font size

// Bytes of the UTF-8 character that begins at text[at] (Unicode 15, table 3-7); 0 when there is none.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : 0;
  const std::size_t bytes = lead >= 0xf0 && lead < 0xf5 ? 4 : length;
  if (bytes == 0 || at + bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  const auto second = static_cast<unsigned char>(text[at + 1]);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool outside = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return overlong || outside ? 0 : bytes;
}

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
      return static_cast<unsigned char>(character) < 0x20 || character == 0x7f ? "?" : "";
  }
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    const std::string_view replaced = length == 1 ? entity(text[at]) : length == 0 ? "?" : "";
    escaped += replaced.empty() ? text.substr(at, length) : replaced;
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
  std::size_t cut = text.size();  // where the last character that may stay with an ellipsis ends
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
