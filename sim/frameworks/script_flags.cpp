#include "frameworks/script_flags.h"

#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace rehearse {

namespace {

using Variables = std::map<std::string, std::string>;

// With variables written out, which may double each other from line to line.
constexpr std::size_t kLongestLine = 1 << 15, kLongestText = 1 << 22;

bool in_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

std::string without_comment(const std::string& line) {
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i] == '#' && (i == 0 || std::isspace(static_cast<unsigned char>(line[i - 1])) != 0))
      return line.substr(0, i);
  return line;
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string expand(const std::string& text, const Variables& variables);

// "A*B" -> their product; the text as it stands when a factor is not known.
std::string product(const std::string& text, const Variables& variables) {
  std::int64_t result = 1;
  std::istringstream factors(text);
  for (std::string factor; std::getline(factors, factor, '*');) {
    std::string bare;
    for (const char letter : factor)
      if (std::isspace(static_cast<unsigned char>(letter)) == 0) bare += letter;
    const auto known = variables.find(bare);
    const std::optional<std::int64_t> value =
        number(known != variables.end() ? known->second : expand(bare, variables));
    constexpr std::int64_t kMost = 1'000'000'000;
    if (!value || *value < -kMost || *value > kMost || result < -kMost || result > kMost)
      return "$((" + text + "))";
    result *= *value;
  }
  return std::to_string(result);
}

// NAME, or NAME:-default
std::string braced(const std::string& inside, const Variables& variables) {
  const std::size_t colon = inside.find(":-");
  const auto known = variables.find(inside.substr(0, colon));
  if (known != variables.end()) return known->second;
  return colon == std::string::npos ? "${" + inside + "}" : inside.substr(colon + 2);
}

// Ends early where the result is longer than any line.
std::string expand(const std::string& text, const Variables& variables) {
  std::string result;
  for (std::size_t i = 0; i < text.size() && result.size() <= kLongestLine; ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const bool arithmetic = text.compare(i, 3, "$((") == 0;
    const std::size_t end = arithmetic ? text.find("))", i) : text.find('}', i);
    if (arithmetic && end != std::string::npos) {
      result += product(text.substr(i + 3, end - i - 3), variables);
      i = end + 1;
    } else if (text[i + 1] == '{' && end != std::string::npos) {
      result += braced(text.substr(i + 2, end - i - 2), variables);
      i = end;
    } else {
      std::size_t last = i + 1;
      while (last < text.size() && in_name(text[last])) ++last;
      const auto known = variables.find(text.substr(i + 1, last - i - 1));
      result += known == variables.end() ? text.substr(i, last - i) : known->second;
      i = last - 1;
    }
  }
  return result;
}

// NAME=value at the beginning of a line, maybe exported. Flags in a variable count where they stand.
void note_assignment(std::string line, Variables& variables) {
  line.erase(0, line.find_first_not_of(" \t"));
  if (line.starts_with("export ")) line.erase(0, 7);
  std::size_t end = 0;
  while (end < line.size() && in_name(line[end])) ++end;
  if (end == 0 || end >= line.size() || line[end] != '=') return;
  std::string value;
  for (const char letter : expand(line.substr(end + 1), variables)) {
    if (letter == ' ' || letter == '\t' || letter == '(') break;
    if (letter != '"' && letter != '\'') value += letter;
  }
  if (!value.empty() && !value.starts_with("--")) variables[line.substr(0, end)] = value;
}

bool separates(char letter) {
  return std::isspace(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("\"'()\\;").find(letter) != std::string_view::npos;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  for (const char letter : line + " ") {
    if (!separates(letter)) {
      word += letter;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, ""));
    }
  }
  return words;
}

// A layout is quoted because it holds parentheses and bars: it is one word.
std::vector<std::string> quoted_words(const std::string& line, const std::string& flag) {
  const std::size_t at = line.find(flag);
  if (at == std::string::npos) return {};
  const std::size_t begin = line.find_first_of("\"'", at);
  const std::size_t end = begin == std::string::npos ? begin : line.find(line[begin], begin + 1);
  if (end == std::string::npos) return {};
  return {line.substr(begin + 1, end - begin - 1)};
}

void require_length(const std::string& line, std::size_t total, const std::string& file, int number) {
  if (line.size() > kLongestLine || total > kLongestText)
    throw InputError(
        {file, fmt::format("line {}", number),
         fmt::format("with its variables written out, a script has at most {} characters in a line "
                     "and {} in all",
                     kLongestLine, kLongestText),
         "", ""});
}

bool is_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") && std::isalpha(static_cast<unsigned char>(word[2])) != 0;
}

}  // namespace

std::vector<ScriptFlag> script_flags(const std::string& text, const std::string& file) {
  constexpr const char* kLayout = "--pipeline-model-parallel-layout";
  std::vector<ScriptFlag> flags;
  Variables variables;
  std::istringstream lines(text);
  int number_of_line = 0;
  std::size_t total = 0;
  for (std::string raw; std::getline(lines, raw);) {
    ++number_of_line;
    const std::string line = without_comment(raw);
    require_length(line, total, file, number_of_line);
    note_assignment(line, variables);
    const std::string expanded = expand(line, variables);
    require_length(expanded, total += expanded.size(), file, number_of_line);
    bool open = false;  // a flag of this line takes what follows
    for (const std::string& word : words_of(expanded)) {
      if (is_flag(word)) {
        const std::size_t equals = word.find('=');
        flags.push_back({word.substr(0, equals), {}, number_of_line});
        if (equals != std::string::npos) flags.back().values.push_back(word.substr(equals + 1));
        open = true;
      } else if (open) {
        flags.back().values.push_back(word);
      }
    }
    const std::vector<std::string> layout = quoted_words(expanded, kLayout);
    for (auto flag = flags.rbegin(); flag != flags.rend() && flag->line == number_of_line; ++flag)
      if (flag->name == kLayout && !layout.empty()) flag->values = layout;
  }
  return flags;
}

}  // namespace rehearse
