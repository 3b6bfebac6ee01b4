#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace rehearse {

namespace {

constexpr std::size_t kFewestColumns = 20;  // with fewer, wrapping has no use

// Size of the character that begins here; an invalid byte counts as one.
std::size_t size_at(std::string_view text) {
  return std::max<std::size_t>(1, utf8_size(text));
}

// The words of a line after its indent. A quoted part of a command is one word.
std::vector<std::string> words_of(std::string_view line, bool is_command) {
  std::vector<std::string> words;
  bool is_quoted = false, is_new = true;
  for (const char letter : line) {
    if (is_command && letter == '\'') is_quoted = !is_quoted;
    if (letter == ' ' && !is_quoted) {
      is_new = true;
    } else {
      if (is_new) words.emplace_back();
      is_new = false;
      words.back() += letter;
    }
  }
  return words;
}

struct Layout {
  std::size_t begin = 0;  // start of the words that may be moved
  std::size_t hang = 0;   // indent of continuation lines
  bool is_command = false;
};

// The column of names and the column of descriptions are two spaces or more apart.
Layout layout_of(const std::string& line, std::size_t columns) {
  const std::size_t indent = line.find_first_not_of(' ');
  if (indent == std::string::npos) return {};
  if (line.compare(indent, 9, "rehearse ") == 0 && indent > 0) return {indent, indent + 4, true};
  const std::size_t gap = line.find("  ", indent);
  const std::size_t text = gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
  if (text == std::string::npos || text * 3 > columns * 2) return {indent, indent, false};
  return {text, text, false};
}

// Names of a flag, "--a,--b", may be split after a comma.
std::vector<std::string> parts_of(const std::string& word, bool is_command) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < word.size(); ++i) {
    parts.back() += word[i];
    if (!is_command && word[i] == ',' && word.compare(i + 1, 2, "--") == 0) parts.emplace_back();
  }
  return parts;
}

std::string broken(const std::string& line, std::size_t columns) {
  const Layout layout = layout_of(line, columns);
  const std::size_t room = columns - (layout.is_command ? 2 : 0);  // for the backslash
  std::string text = line.substr(0, layout.begin);
  std::size_t at = layout.begin;
  const auto put = [&](const std::string& part, std::size_t blank) {
    const std::size_t wide = characters(part);
    if (at > layout.hang && at + blank + wide > room) {
      text += (layout.is_command ? " \\\n" : "\n") + std::string(layout.hang, ' ');
      at = layout.hang;
      blank = 0;
    }
    text += std::string(blank, ' ') + part;
    at += blank + wide;
  };
  std::size_t blank = 0;
  for (const std::string& word : words_of(std::string_view(line).substr(layout.begin), layout.is_command)) {
    for (const std::string& part : parts_of(word, layout.is_command)) {
      put(part, blank);
      blank = 0;
    }
    blank = 1;
  }
  return text;
}

}  // namespace

std::size_t terminal_columns() {
  if (const char* given = std::getenv("COLUMNS"); given != nullptr) {
    const std::string_view text(given);
    std::size_t columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns > 0) return columns;
  }
  winsize size = {};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::size_t characters(const std::string& text) {
  std::size_t count = 0;
  for (std::string_view left = text; !left.empty(); left.remove_prefix(size_at(left))) ++count;
  return count;
}

std::string cut_to(const std::string& text, std::size_t columns) {
  constexpr std::string_view kDots = "...";
  if (columns == 0 || characters(text) <= columns) return text;
  std::string_view left = text;
  for (std::size_t i = kDots.size(); i < columns; ++i) left.remove_prefix(size_at(left));
  return text.substr(0, text.size() - left.size()) + std::string(kDots.substr(0, columns));
}

std::string help_in_columns(const std::string& help, std::size_t columns) {
  if (columns < kFewestColumns) return help;
  std::istringstream lines(help);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    text += (characters(line) <= columns ? line : broken(line, columns)) + "\n";
  return text;
}

}  // namespace rehearse
