// How is a text file read?
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace rehearse {

// The size limit of a file that is read completely.
inline constexpr std::size_t kMaxTextBytes = 64'000'000;

// The file's bytes. InputError, with the system's reason, when it cannot be read, is not a regular file (a
// pipe or a device may never end) or has more than `most_bytes`. A stream is read to its end, once; later
// calls return the same text.
std::string read_text_file(const std::string& path, std::size_t most_bytes = kMaxTextBytes);

// "-" (standard input) or a stream that the shell opened: /dev/stdin, /dev/fd/63 of `<(command)`.
bool is_stream(const std::string& path);

// Whether this process has read the stream already, so that reading it again does not wait.
bool was_streamed(const std::string& path);

// The folder that a file's relative paths start from; "", the working directory, for a stream.
std::filesystem::path folder_of(const std::string& file);

// The name of a file without its ending, used as the name of its contents; "stdin" for a stream.
std::string stem_of(const std::string& file);

// The reason why read_text_file() would refuse this path; "" when it would open it.
std::string why_unreadable(const std::string& path);

// Whether this process has read the file of this name; then it must not be written.
bool was_read(const std::string& path);

}  // namespace rehearse
