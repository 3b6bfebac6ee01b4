#include "base/utf8.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace rehearse {

namespace {

struct CodeRange {
  std::uint32_t first, last;
};

// Characters that control a terminal or a page instead of being shown.
constexpr std::array kSteering = {
    CodeRange{0x00, 0x1f},       CodeRange{0x7f, 0x9f},  // control characters (Unicode's category Cc)
    CodeRange{0xad, 0xad},                               // soft hyphen
    CodeRange{0x61c, 0x61c},                             // Arabic letter mark
    CodeRange{0x180e, 0x180e},                           // Mongolian vowel separator
    CodeRange{0x200b, 0x200f},                           // zero width, marks of direction
    CodeRange{0x2028, 0x202e},    // separators of lines, embedded and overridden direction
    CodeRange{0x2060, 0x206f},    // joiners, invisible operators, isolated direction
    CodeRange{0xfeff, 0xfeff},    // byte order mark
    CodeRange{0xfff9, 0xfffb},    // interlinear annotation
    CodeRange{0xe0000, 0xe007f},  // tags
};

}  // namespace

std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0xffU >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

bool steers(std::string_view character) {
  const std::uint32_t code = code_point(character);
  const auto holds = [code](const CodeRange& range) { return code >= range.first && code <= range.last; };
  return std::ranges::any_of(kSteering, holds);
}

std::size_t utf8_size(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xf0 && byte(1) < 0x90);
  const bool no_character = (byte(0) == 0xed && byte(1) >= 0xa0) || (byte(0) == 0xf4 && byte(1) >= 0x90);
  return overlong || no_character ? 0 : size;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text, bool lines) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, size));
    if (size > 0 && (!steers(character) || (lines && character == "\n")))
      plain += character;
    else
      for (const char byte : character) plain += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(character.size());
  }
  return plain;
}

}  // namespace rehearse
