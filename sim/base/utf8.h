// Is this valid, printable text? JSON and terminals accept no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

// Bytes of the first character (UTF-8, RFC 3629); 0 where the text does not begin with one.
std::size_t utf8_size(std::string_view text);

bool is_utf8(std::string_view text);

// The number of a whole character, as Unicode assigns it.
std::uint32_t code_point(std::string_view character);

// Whether this character controls a terminal or a page instead of being shown: control characters, direction
// marks, zero-width characters.
bool steers(std::string_view character);

// The text in a form that is safe for a terminal: controlling characters and invalid bytes become \xNN. Line
// breaks stay with `lines`.
std::string printable(std::string_view text, bool lines = false);

}  // namespace rehearse
