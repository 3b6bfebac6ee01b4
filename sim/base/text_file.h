// What does a file say?
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace rehearse {

// No file that is read whole holds more bytes.
inline constexpr std::size_t kMaxTextBytes = 64'000'000;

// Its bytes. InputError, with the system's reason, when it cannot be read, is no regular file (a pipe or a
// device may never end) or holds more than `most_bytes`. A stream is read to its end, once: who asks again
// gets the same text.
std::string read_text_file(const std::string& path, std::size_t most_bytes = kMaxTextBytes);

// "-" (standard input) or what the shell opened: /dev/stdin, /dev/fd/63 of `<(command)`.
bool is_stream(const std::string& path);

// Whether the stream was read by this process already: it can be read without waiting for anybody.
bool was_streamed(const std::string& path);

// The folder from which a file's relative paths lead; "", the working directory, for a stream.
std::filesystem::path folder_of(const std::string& file);

// The name of a file without its ending, by which what it holds is called; "stdin" for a stream.
std::string stem_of(const std::string& file);

// Why read_text_file() would refuse to open this path; "" when it would open it.
std::string why_unreadable(const std::string& path);

// Whether this process has read the file of this name: it is no place to write to.
bool was_read(const std::string& path);

}  // namespace rehearse
