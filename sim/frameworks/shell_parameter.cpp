#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_expansion.h"
#include "frameworks/shell_words.h"

namespace rehearse {

namespace {

constexpr int kDeepestDefault = 32;                 // ${A:-${B:-...}}
constexpr std::size_t kMaxWordsOfBraces = 100'000;  // of {a,b}{c,d}
constexpr std::int64_t kFarthest = 1'000'000'000;

BranchPointer branch_of_any(const ShellValue& value) {
  for (const ShellText& element : value)
    if (BranchPointer branch = branch_of(element)) return branch;
  return nullptr;
}

bool is_decided_list(const ShellValue& value) {
  return std::ranges::all_of(value, is_decided);
}

// Whether bytes are letters.
bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char one) { return one < 0x80; });
}

ShellNumber small_integer(const std::string& text) {
  const ShellNumber value = shell_integer(text);
  return value && *value > -kFarthest && *value < kFarthest ? value : std::nullopt;
}

// 1..4 and 8..64..8
std::vector<std::string> range_of(const std::string& inside) {
  const std::size_t first = inside.find(".."), second = inside.find("..", first + 2);
  if (first == std::string::npos) return {};
  if (inside.size() == 4 && std::isalpha(static_cast<unsigned char>(inside[0])) != 0 &&
      std::isalpha(static_cast<unsigned char>(inside[3])) != 0) {
    std::vector<std::string> letters;
    const int by = inside[0] <= inside[3] ? 1 : -1;
    for (int one = inside[0]; one != inside[3] + by; one += by)
      letters.emplace_back(1, static_cast<char>(one));
    return letters;
  }
  const auto from = small_integer(inside.substr(0, first)),
             to = small_integer(inside.substr(first + 2, second - first - 2));
  const auto by =
      second == std::string::npos ? std::optional<std::int64_t>(1) : small_integer(inside.substr(second + 2));
  if (!from || !to || !by) return {};
  const std::size_t width = inside[0] == '0' || inside[first + 2] == '0'  // {01..10}
                                ? std::max(first, inside.size() - first - 2)
                                : 0;
  const std::int64_t step = std::max<std::int64_t>(1, std::abs(*by)) * (*from <= *to ? 1 : -1);
  std::vector<std::string> all;
  // More than any script has, by one or more.
  for (std::int64_t i = *from; (step > 0 ? i <= *to : i >= *to) && all.size() <= kMaxWordsOfBraces; i += step)
    all.push_back(fmt::format("{:0{}}", i, width));
  return all;
}

// The place behind a text in quotes, an escaped letter or an expansion that begins here; else the next one.
std::size_t behind_unit(const std::string& word, std::size_t at) {
  const char one = word[at];
  if (one == '\\') return std::min(at + 2, word.size());
  if (one == '\'') return std::min(word.find('\'', at + 1), word.size() - 1) + 1;
  if (word.compare(at, 2, "${") == 0)
    return std::min(end_of_brackets(word, at + 1, '{', '}') + 1, word.size());
  if (word.compare(at, 2, "$(") == 0)
    return std::min(end_of_brackets(word, at + 1, '(', ')') + 1, word.size());
  if (one != '"') return at + 1;
  for (++at; at < word.size() && word[at] != '"'; ++at)
    if (word[at] == '\\') ++at;
  return std::min(at + 1, word.size());
}

// The parts of {a,b} or {1..3}, whose bracket opens here. None for another word. `end`: the place behind it.
std::vector<std::string> parts_of(const std::string& word, std::size_t open, std::size_t& end) {
  std::vector<std::string> parts;
  std::size_t begin = open + 1;
  int depth = 0;
  for (std::size_t at = open; at < word.size();) {
    const char one = word[at];
    if (one == '{') ++depth;
    if (one == '}' && --depth == 0) {
      parts.push_back(word.substr(begin, at - begin));
      end = at + 1;
      return parts.size() > 1 ? parts : range_of(parts.front());
    }
    if (one == ',' && depth == 1) {
      parts.push_back(word.substr(begin, at - begin));
      begin = at + 1;
    }
    at = one == '{' || one == '}' ? at + 1 : behind_unit(word, at);
  }
  return {};
}

}  // namespace

std::optional<std::vector<std::string>> shell_alternatives(const std::string& word) {
  std::vector<std::string> open = {word}, all;
  while (!open.empty() && all.size() + open.size() <= kMaxWordsOfBraces) {
    const std::string next = std::move(open.back());
    open.pop_back();
    std::size_t end = 0, at = 0;
    std::vector<std::string> parts;
    while (at < next.size() && parts.empty()) {
      if (next[at] == '{') parts = parts_of(next, at, end);
      if (parts.empty()) at = behind_unit(next, at);
    }
    if (parts.empty()) all.push_back(next);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
      open.push_back(next.substr(0, at) + *part + next.substr(end));
  }
  return open.empty() ? std::optional(std::move(all)) : std::nullopt;
}

// ${NAME}, ${NAME[@]}, ${NAME[key]}, ${#NAME}, ${NAME:-default}, ${NAME%.sh} and their like; others stay as
// they stand.
void ShellValues::Expansion::braced(const std::string& inside, const std::string& text) {
  if (inside == "#" || inside == "?") return named(inside, text);
  if (inside.size() > 1 && inside[0] == '#') return count(inside.substr(1), text);
  if (inside.size() > 1 && inside[0] == '!') return indirect(inside.substr(1), text);
  std::size_t end = end_of_name(inside, 0);
  while (end > 0 && end < inside.size() && std::isdigit(static_cast<unsigned char>(inside[0])) != 0 &&
         std::isdigit(static_cast<unsigned char>(inside[end])) != 0)
    ++end;
  const std::string name = inside.substr(0, end);
  std::string rest = inside.substr(end);
  if (name.empty() || name == "#" || name == "!") return unknown(text);
  char elements = name == "@" || name == "*" ? name[0] : '\0';
  if (rest.starts_with("[@]") || rest.starts_with("[*]")) {
    elements = rest[1];
    rest.erase(0, 3);
  }
  if (!rest.starts_with('[')) {
    const ShellValue* value = values_.find(name);
    if (rest.empty()) return value ? add_value(*value, elements) : named(name, text);
    return changed(name, value, rest, elements, text);
  }
  const std::size_t close = end_of_brackets(rest, 0, '[', ']');
  const std::optional<ShellValue> one = element(name, rest.substr(1, close - 1));
  rest.erase(0, std::min(close + 1, rest.size()));
  if (!one && rest.empty()) return unknown(text);
  if (rest.empty()) return add_value(*one, '\0');
  changed(name, one ? &*one : nullptr, rest, '\0', text);
}

std::optional<ShellValue> ShellValues::Expansion::element(const std::string& name,
                                                          const std::string& subscript) {
  const auto key = values_.key_of(name, subscript, line_, branch_);
  if (key) return values_.element(name, *key);
  return ShellValue{{{"${" + name + "[" + subscript + "]}", line_, branch_, ShellOpen::text}}};
}

void ShellValues::Expansion::changed(const std::string& name, const ShellValue* value,
                                     const std::string& rest, char elements, const std::string& text) {
  const std::string sign = rest.substr(rest.starts_with(":") ? 1 : 0, 1);
  if (!sign.empty() && std::string_view("-=+?").find(sign) != std::string_view::npos)
    return sign == "?" && value == nullptr ? unknown("$" + name) : defaulted(name, value, rest, elements);
  const bool is_arguments = name == "@" || name == "*";
  if (value == nullptr && is_arguments) return void(vanished_ = true);
  if (value == nullptr) return unknown(text);
  if (const BranchPointer branch = branch_of_any(*value)) return unknown(text, branch);
  if (!is_decided_list(*value) && elements != '\0') return unknown(text);
  if (rest.starts_with(':')) return sliced(*value, is_arguments, rest.substr(1), elements, text);
  if (value->empty()) return elements == '\0' ? unknown(text) : void(vanished_ = elements == '@');
  ShellValue all;
  for (const ShellText& each : *value) {
    if (!is_decided(each)) return unknown(elements == '\0' ? flat(each) : text);
    const ShellText change = change_of(rest);
    const auto other = is_decided(change) ? changed_value(flat(each), flat(change)) : std::nullopt;
    if (!other) return unknown(text, branch_of(change));
    all.push_back(other->empty() ? ShellText() : ShellText{{*other, line_, branch_}});
    if (elements == '\0') break;
  }
  add_value(all, elements);
}

// The operator and its words. A '/' that an expansion holds does not end the pattern of ${NAME/a/b}.
ShellText ShellValues::Expansion::change_of(const std::string& rest) {
  if (rest.starts_with('#') || rest.starts_with('%')) return values_.pattern(rest, line_, false);
  if (!rest.starts_with('/')) return values_.whole(rest, line_, branch_);
  const std::size_t begin =
      rest.size() > 1 && std::string_view("/#%").find(rest[1]) != std::string_view::npos ? 2 : 1;
  std::size_t border = begin;
  while (border < rest.size() && rest[border] != '/') border = behind_unit(rest, border);
  ShellText change{{rest.substr(0, begin), line_, nullptr}};
  for (ShellPiece piece : values_.pattern(rest.substr(begin, border - begin), line_, false)) {
    for (std::size_t at = 0; at < piece.text.size(); ++at)
      if (piece.text[at] == '\\')
        ++at;
      else if (piece.text[at] == '/')
        piece.text.insert(at++, 1, '\\');
    append(change, {piece});
  }
  if (border < rest.size()) append(change, values_.pattern(rest.substr(border), line_, false));
  return change;
}

// ${NAME:-word}, ${NAME:=word}, ${NAME:+word} and ${NAME:?word}
void ShellValues::Expansion::defaulted(const std::string& name, const ShellValue* value,
                                       const std::string& rest, char elements) {
  const bool colon = rest.starts_with(":");
  const char sign = rest[colon ? 1 : 0];
  const std::string word = rest.substr(colon ? 2 : 1);
  const std::string text = "${" + name + rest + "}";
  if ((!value && values_.scope_.lost) || values_.depth_ >= kDeepestDefault) return unknown(text);
  const bool filled = value && !(value->size() == 1 && value->front().empty()) && !value->empty();
  const bool is_set = value && (filled || !colon);
  // An open value may be empty: then a word stands in its place.
  if (sign == '+' && value && !is_decided_list(*value)) return unknown(text, branch_of_any(*value));
  if (sign == '?' || (sign != '+' && is_set)) return add_value(*value, elements);
  if (sign == '+' && !is_set) return;
  if (sign != '=' && splits_here()) return inlined(word);
  ++values_.depth_;
  const ShellText other = values_.whole(word, line_, branch_, quote_ == '"' || in_quotes_);
  --values_.depth_;
  if (sign == '=' && is_shell_name(name)) values_.set(name, {other}, branch_);
  add(other);
}

// ${NAME:1:2}, and elements of ${NAME[@]:1} and ${@:2}
void ShellValues::Expansion::sliced(const ShellValue& value, bool is_arguments, const std::string& range,
                                    char elements, const std::string& text) {
  const std::size_t colon = range.find(':');
  const auto sum = [&](const std::string& part) {
    const ShellText terms = values_.whole(part, line_, branch_);
    return values_.arithmetic(flat(terms), branch_, line_);
  };
  const auto begin = sum(range.substr(0, colon));
  const auto length = colon == std::string::npos ? std::optional(kFarthest) : sum(range.substr(colon + 1));
  if (!begin || !length) return unknown(text);
  if (elements == '\0') {
    if (value.empty() || !is_decided(value.front()) || !is_ascii(flat(value.front()))) return unknown(text);
    const std::string change =
        colon == std::string::npos ? fmt::format(":{}", *begin) : fmt::format(":{}:{}", *begin, *length);
    const auto part = changed_value(flat(value.front()), change);
    return part ? add({{*part, line_, branch_}}) : unknown(text);
  }
  const auto size = static_cast<std::int64_t>(value.size());
  const std::int64_t first = *begin < 0 ? size + *begin : *begin - (is_arguments ? 1 : 0);
  if (first < 0 || *length < 0) return unknown(text);  // $0
  const std::int64_t from = std::min(first, size), to = from + std::min(*length, size - from);
  add_value({value.begin() + from, value.begin() + to}, elements);
}

// ${#NAME} and ${#NAME[@]}.
void ShellValues::Expansion::count(const std::string& inside, const std::string& text) {
  const std::size_t end = end_of_name(inside, 0);
  const std::string name = inside.substr(0, end);
  const ShellValue* value = values_.find(name);
  const std::string rest = inside.substr(end);
  if (value == nullptr) return unknown(text);
  const bool all = rest == "[@]" || rest == "[*]" || (rest.empty() && (name == "@" || name == "*"));
  if (const BranchPointer branch = branch_of_any(*value)) return unknown(text, branch);
  if (all) return std::ranges::any_of(*value, is_many) ? unknown(text) : add(number(value->size()));
  std::optional<ShellValue> one;
  if (rest.starts_with('[') && rest.ends_with(']')) {
    one = element(name, rest.substr(1, rest.size() - 2));
    value = one ? &*one : nullptr;
  } else if (!rest.empty()) {
    value = nullptr;
  }
  if (value == nullptr || value->empty() || !is_decided(value->front()) || !is_ascii(flat(value->front())))
    return unknown(text);
  add(number(flat(value->front()).size()));
}

// ${!NAME} and ${!NAME[@]}.
void ShellValues::Expansion::indirect(const std::string& inside, const std::string& text) {
  const std::string name = inside.substr(0, end_of_name(inside, 0));
  const std::string rest = inside.substr(name.size());
  const ShellValue* value = values_.find(name);
  if (value == nullptr) return unknown(text);
  if (const BranchPointer branch = branch_of_any(*value)) return unknown(text, branch);
  if (rest == "[@]" || rest == "[*]") {
    if (std::ranges::any_of(*value, is_many)) return unknown(text);
    ShellValue keys;
    for (const std::string& key : values_.keys_of(name)) keys.push_back({{key, line_, branch_}});
    return add_value(keys, rest[1]);
  }
  if (value->empty() || !is_decided(value->front())) return unknown(text);
  std::string target = flat(value->front());
  char elements = '\0';
  std::optional<ShellValue> one;
  const ShellValue* other = nullptr;
  if (target.ends_with("[@]") || target.ends_with("[*]")) {
    elements = target[target.size() - 2];
    target.erase(target.size() - 3);
  }
  if (const std::size_t bracket = target.find('['); bracket != std::string::npos && target.ends_with(']')) {
    one = element(target.substr(0, bracket), target.substr(bracket + 1, target.size() - bracket - 2));
    other = one ? &*one : nullptr;
  } else {
    other = values_.find(target);
  }
  if (!rest.empty()) return changed(target, other, rest, elements, text);
  other ? add_value(*other, elements) : unknown(text);
}

}  // namespace rehearse
