// How does the program print messages for a person? Names appear as in the inputs, but cannot control the
// terminal.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace rehearse {

// A message that cannot be written does not fail the work; the exit code still reports it.
inline void print_talk(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Like fmt::print(), with control characters except line breaks as \xNN. Never throws because stderr is
// missing.
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

// A verb's answer: for a person, or as JSON, which has its own escapes.
inline void print_answer(const std::string& text, bool json) {
  fmt::print("{}", json ? text : printable(text, true));
}

}  // namespace rehearse
