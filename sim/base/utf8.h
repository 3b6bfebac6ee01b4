// Is this text? JSON and terminals take no other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rehearse {

// Bytes of the character that the text begins with (UTF-8, RFC 3629); 0 where it begins with none.
std::size_t utf8_size(std::string_view text);

bool is_utf8(std::string_view text);

// Does this whole character steer a terminal or a page instead of being shown: control characters, marks of
// direction, what has no width?
bool steers(std::string_view character);

// The text as a terminal may show it: characters that steer it and bytes that are no
// character as \xNN. Line breaks stay where `lines` are shown.
std::string printable(std::string_view text, bool lines = false);

}  // namespace rehearse
