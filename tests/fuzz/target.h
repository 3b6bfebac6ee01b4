// What is a fuzz target? One reader, which must answer any bytes with a value or with a declared error.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace rehearse::fuzz {

// Makes a reader known by its name. Only InputError, DoesNotFit and MissingCalibration may come out of it.
class Target {
 public:
  using Read = void (*)(const std::string& input);
  Target(const std::string& name, Read read);
};

// The reader that the program is called after, fuzz_NAME: LLVMFuzzerTestOneInput gives its inputs to that
// one. A program of another name ends.
void choose(const std::string& program);

// The path of a file with the input, for readers of files. It is in memory, and the next call replaces it.
std::string file_of(std::string_view input);

// The first line, and the rest.
std::pair<std::string, std::string> first_line(const std::string& input);

}  // namespace rehearse::fuzz
