// How does the program speak to a person? Names stand in what it says as inputs have them, and steer no
// terminal.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace rehearse {

// As fmt::print(), with control characters but line breaks as \xNN.
template <typename... Args>
void say(std::FILE* to, fmt::format_string<Args...> format, Args&&... args) {
  fmt::print(to, "{}", printable(fmt::format(format, std::forward<Args>(args)...), true));
}

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say(stdout, format, std::forward<Args>(args)...);
}

// What a verb answers: for a person, or as JSON, which has escapes of its own.
inline void print_answer(const std::string& text, bool json) {
  fmt::print("{}", json ? text : printable(text, true));
}

}  // namespace rehearse
