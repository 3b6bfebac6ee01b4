// Which scripts of bash does the test of the interpreter draw?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

struct ShellSnippet {
  std::string text;  // its last command is `probe`, with kScalars words in quotes before the words of lists
  bool is_open;      // words, commands or files stand in it that the text does not decide
};

inline constexpr std::size_t kScalarsOfProbe = 8;

// The same snippets for the same seed.
std::vector<ShellSnippet> draw_shell_snippets(std::size_t count, std::uint32_t seed);

}  // namespace rehearse
