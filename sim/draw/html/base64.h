// How are bytes written as text in a page? RFC 4648, section 4.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::html {

std::string base64(std::string_view bytes);

}  // namespace rehearse::html
