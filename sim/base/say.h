// How does the program speak to a person? Names stand in what it says as inputs have them, and steer no
// terminal.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace rehearse {

// Talk that cannot be delivered changes nothing of what was to be done: the exit code still tells.
inline void print_talk(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// As fmt::print(), with control characters but line breaks as \xNN. Never throws for want of a stderr.
template <typename... Args>
void say(std::FILE* to, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = printable(fmt::format(format, std::forward<Args>(args)...), true);
  if (to == stderr) return print_talk(text);
  fmt::print(to, "{}", text);
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
