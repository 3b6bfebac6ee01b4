// What does a file say?
#pragma once

#include <string>

namespace rehearse {

// Its bytes. InputError when it cannot be read.
std::string read_text_file(const std::string& path);

}  // namespace rehearse
