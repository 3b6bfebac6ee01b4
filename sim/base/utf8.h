// Is this text? JSON and terminals take no other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rehearse {

// Bytes of the character that the text begins with (UTF-8, RFC 3629); 0 where it begins with none.
std::size_t utf8_size(std::string_view text);

bool is_utf8(std::string_view text);

// The text as a terminal may show it: control characters, which would steer it, and bytes that are no
// character as \xNN. Line breaks stay where `lines` are shown.
std::string printable(std::string_view text, bool lines = false);

}  // namespace rehearse
