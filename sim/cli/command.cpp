#include "cli/command.h"

#include <string_view>

namespace rehearse {

namespace {

std::string remembered = "rehearse";

std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char letter : word) {
    if (letter == '\'')
      text += "'\\''";
    else
      text += letter;
  }
  text += '\'';
  return text;
}

}  // namespace

void remember_command(int argc, char** argv) {
  remembered = "rehearse";
  for (int i = 1; i < argc; ++i) remembered.append(1, ' ').append(quoted(argv[i]));
}

const std::string& command_line() {
  return remembered;
}

}  // namespace rehearse
