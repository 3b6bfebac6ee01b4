// What is the SHA-256 of a text? Content security policies name inline scripts by it.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::html {

// FIPS 180-4, section 6.2, in base64 (RFC 4648, section 4).
std::string sha256_base64(std::string_view text);

}  // namespace rehearse::html
