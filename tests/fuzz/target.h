// What is a fuzz target? One reader, which answers any bytes by what it read or by an error that it declares.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace rehearse::fuzz {

// Each target defines it: gives the input to its reader. Only InputError, DoesNotFit and MissingCalibration
// may come out.
void read(const std::string& input);

// The path of a file that holds the input, for readers that take one; it lies in memory, and the next call
// replaces it.
std::string file_of(std::string_view input);

// The first line, and what follows it.
std::pair<std::string, std::string> first_line(const std::string& input);

}  // namespace rehearse::fuzz
