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

// Whether this process has read the file of this name: it is no place to write to.
bool was_read(const std::string& path);

}  // namespace rehearse
