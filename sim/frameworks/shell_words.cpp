#include "frameworks/shell_words.h"

#include <fmt/printf.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_pattern.h"

namespace rehearse {

namespace {

constexpr std::size_t kLongestValue = 4096;
constexpr std::size_t kLongestChange = 64;
constexpr std::int64_t kMaxNumbers = 100'000;  // of seq
constexpr std::int64_t kLargestNumber = 1'000'000'000;

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Removes the shortest or longest beginning, or end, that fits the pattern.
std::string without(const std::string& value, const std::string& pattern, bool at_end, bool longest) {
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const std::size_t size = longest ? value.size() - i : i;
    const std::string part = at_end ? value.substr(value.size() - size) : value.substr(0, size);
    if (fits(pattern, part)) return at_end ? value.substr(0, value.size() - size) : value.substr(size);
  }
  return value;
}

std::optional<std::string> substring(const std::string& value, const std::string& range) {
  std::array<std::int64_t, 2> numbers = {0, static_cast<std::int64_t>(value.size())};
  std::size_t begin = 0;
  for (std::size_t i = 0; i < numbers.size() && begin <= range.size(); ++i) {
    const std::size_t end = std::min(range.find(':', begin), range.size());
    std::string digits = range.substr(begin, end - begin);
    std::erase(digits, ' ');
    const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), numbers[i]);
    if (error != std::errc() || at != digits.data() + digits.size()) return std::nullopt;
    begin = end + 1;
  }
  const auto size = static_cast<std::int64_t>(value.size());
  const std::int64_t from =
      std::clamp<std::int64_t>(numbers[0] < 0 ? size + numbers[0] : numbers[0], 0, size);
  const std::int64_t count =
      numbers[1] < 0 ? std::max<std::int64_t>(0, size + numbers[1] - from) : numbers[1];
  return value.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(count));
}

// "x/y", "/x/y" for all, "#x/y" at the beginning and "%x/y" at the end.
std::optional<std::string> replaced(const std::string& value, std::string change) {
  const char place = change.empty() ? '\0' : change[0];
  const bool is_placed = place == '/' || place == '#' || place == '%';
  if (is_placed) change.erase(0, 1);
  std::size_t border = 0;
  while (border < change.size() && change[border] != '/') border += change[border] == '\\' ? 2 : 1;
  const std::string from = change.substr(0, border);
  const std::string to = border < change.size() ? without_escapes(change.substr(border + 1)) : "";
  if (to.find('&') != std::string::npos) return std::nullopt;  // newer shells put the old part there
  if (!is_placed || place == '/') return shell_replaced(value, from, to, place == '/');
  const std::string rest = without(value, from, place == '%', true);
  if (rest.size() == value.size() && !from.empty()) return value;
  return place == '%' ? rest + to : to + rest;
}

std::string cased(std::string text, bool upper, bool all) {
  for (std::size_t i = 0; i < text.size() && (all || i == 0); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(upper ? std::toupper(letter) : std::tolower(letter));
  }
  return text;
}

// seq LAST, seq FIRST LAST and seq FIRST STEP LAST
std::optional<std::string> numbers_of(const std::vector<std::string>& words) {
  std::array<std::int64_t, 3> range = {1, 1, 1};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    std::int64_t& number = range[words.size() == 2 ? 2 : words.size() == 3 && i == 2 ? 2 : i - 1];
    const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || at != word.data() + word.size()) return std::nullopt;
  }
  const auto [first, step, last] = range;
  const bool is_large = std::ranges::any_of(range, [](auto each) { return std::abs(each) > kLargestNumber; });
  if (step == 0 || is_large || (last - first) / step > kMaxNumbers) return std::nullopt;
  std::string all;
  for (std::int64_t number = first; step > 0 ? number <= last : number >= last; number += step)
    all += std::to_string(number) + "\n";
  return all;
}

// Reads '\n' and its like in a format; the letter behind stays where it is none of them.
std::string unescaped(char letter) {
  const std::size_t known = std::string_view("nt\\\"r").find(letter);
  return known == std::string_view::npos ? std::string{'\\', letter} : std::string(1, "\n\t\\\"\r"[known]);
}

// One conversion such as "%03d" for its argument.
std::optional<std::string> converted(const std::string& conversion, const std::string& argument) {
  constexpr std::size_t kLongestConversion = 6;
  if (conversion.size() > kLongestConversion) return std::nullopt;
  std::string flags = conversion.substr(1, conversion.size() - 2);
  const auto of_flags = [](char one) {
    return std::string_view("-+0 .123456789").find(one) != std::string_view::npos;
  };
  if (!std::ranges::all_of(flags, of_flags)) return std::nullopt;
  if (conversion.back() == 's') return flags.empty() ? argument : fmt::sprintf("%" + flags + "s", argument);
  if (conversion.back() != 'd' && conversion.back() != 'i') return std::nullopt;
  const ShellNumber number =
      argument.empty() ? ShellNumber(0)
                       : shell_arithmetic(argument, {[](const std::string&) { return ShellNumber(); }});
  return number ? std::optional(fmt::sprintf("%" + flags + "d", *number)) : std::nullopt;
}

}  // namespace

std::optional<std::string> sum_of(const std::string& expression) {
  for (std::size_t at = 0; at < expression.size(); ++at) {
    const bool begins = at == 0 || std::isdigit(static_cast<unsigned char>(expression[at - 1])) == 0;
    const bool is_octal = expression[at] == '0' && begins && at + 1 < expression.size() &&
                          std::isdigit(static_cast<unsigned char>(expression[at + 1])) != 0;
    if (is_octal || std::string_view("0123456789 +-*/%()").find(expression[at]) == std::string_view::npos)
      return std::nullopt;
  }
  if (expression.find("**") != std::string::npos) return std::nullopt;
  const ShellNumber value = shell_arithmetic(expression, {[](const std::string&) { return ShellNumber(); }});
  return value ? std::optional(std::to_string(*value) + "\n") : std::nullopt;
}

std::optional<std::string> changed_value(const std::string& value, const std::string& change) {
  if (value.size() > kLongestValue || change.size() > kLongestChange || change.empty()) return std::nullopt;
  if (change == ",," || change == ",") return cased(value, false, change.size() == 2);
  if (change == "^^" || change == "^") return cased(value, true, change.size() == 2);
  const bool twice = change.size() > 1 && change[1] == change[0];
  const std::string rest = change.substr(twice ? 2 : 1);
  if (change[0] == '%') return without(value, rest, true, twice);
  if (change[0] == '#') return without(value, rest, false, twice);
  if (change[0] == '/') return replaced(value, change.substr(1));
  if (change[0] == ':') return substring(value, change.substr(1));
  return std::nullopt;
}

std::optional<std::string> printed(const std::string& format, const std::vector<std::string>& arguments) {
  std::string text;
  std::size_t next = 0;
  do {  // the format serves until no argument is left
    const std::size_t before = next;
    for (std::size_t at = 0; at < format.size(); ++at) {
      if (format[at] == '\\' && at + 1 < format.size()) {
        text += unescaped(format[++at]);
      } else if (format.compare(at, 2, "%%") == 0) {
        text += format[++at];
      } else if (format[at] == '%') {
        const std::size_t end =
            std::min(format.find_first_not_of("-+0 .123456789", at + 1), format.size() - 1);
        const auto one =
            converted(format.substr(at, end + 1 - at), next < arguments.size() ? arguments[next] : "");
        if (!one || text.size() > kLongestValue) return std::nullopt;
        text += *one;
        ++next;
        at = end;
      } else {
        text += format[at];
      }
    }
    if (next == before) break;
  } while (next < arguments.size());
  return text;
}

namespace {

std::optional<std::string> echoed(const std::vector<std::string>& words) {
  std::size_t first = 0;
  bool ends_line = true;
  for (; first < words.size() && words[first].starts_with('-'); ++first) {
    if (words[first] == "-n")
      ends_line = false;
    else if (words[first] != "-e" && words[first] != "-E")
      break;
  }
  const std::string text = join({words.begin() + static_cast<std::ptrdiff_t>(first), words.end()}, " ");
  if (first > 0 && text.find('\\') != std::string::npos) return std::nullopt;
  return ends_line ? text + "\n" : text;
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::string& name = words[0];
  for (const std::string& word : words)
    if (word.find('$') != std::string::npos || word.size() > kLongestValue) return std::nullopt;
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (name == "expr") return sum_of(join(rest, " "));
  if (name == "echo") return echoed(rest);
  if (name == "printf" && !rest.empty()) return printed(rest[0], {rest.begin() + 1, rest.end()});
  if (name == "basename" && (rest.size() == 1 || rest.size() == 2)) {
    std::string file = rest[0].substr(rest[0].find_last_of('/') + 1);
    if (rest.size() == 2 && file.ends_with(rest[1])) file.erase(file.size() - rest[1].size());
    return file + "\n";
  }
  if (name == "dirname" && rest.size() == 1) {
    const std::size_t slash = rest[0].find_last_of('/');
    return (slash == std::string::npos ? "." : slash == 0 ? "/" : rest[0].substr(0, slash)) + "\n";
  }
  if (name == "seq" && !rest.empty() && rest.size() <= 3) return numbers_of(words);
  return std::nullopt;
}

}  // namespace rehearse
