// What does a file say?
#pragma once

#include <cstddef>
#include <string>

namespace rehearse {

// No file that is read whole holds more bytes.
inline constexpr std::size_t kMostTextBytes = 64'000'000;

// Its bytes. InputError when it cannot be read, is no regular file (a pipe or a device may never end) or
// holds more than `most_bytes`.
std::string read_text_file(const std::string& path, std::size_t most_bytes = kMostTextBytes);

}  // namespace rehearse
