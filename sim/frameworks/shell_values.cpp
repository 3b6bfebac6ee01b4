#include "frameworks/shell_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_words.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxLetters = 1 << 22;  // with variables written out, which may double each other
constexpr std::size_t kMaxArguments = 99;
constexpr std::size_t kLongestShown = 60;  // letters of a value

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

}  // namespace

bool is_shell_name(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, is_name_letter);
}

bool is_shell_assignment(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (name.size() == word.size()) return false;
  if (name.ends_with('+')) name.pop_back();
  const std::size_t bracket = name.find('[');
  if (bracket != std::string::npos && name.ends_with(']')) name.erase(bracket);  // NAME[key]=
  return is_shell_name(name);
}

void ShellValues::spend(std::size_t letters, int line) {
  spent_ += letters;
  if (spent_ > kMaxLetters)
    throw InputError({file_, fmt::format("line {}", line),
                      fmt::format("with its variables written out, a script has at most {} characters in all",
                                  kMaxLetters),
                      "", ""});
}

const ShellValue* ShellValues::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void ShellValues::set(const std::string& name, ShellValue value, const BranchPointer& branch) {
  const int line = value.empty() || value.front().empty() ? 0 : value.front().front().line;
  if (is_given(name, value, line)) return;
  const auto before = values_.find(name);
  if (branch && before != values_.end()) {
    for (const ShellText& element : before->second)
      spend(flat(element).size() + element.size(), branch->line);
    ShellText either = before->second.empty() ? ShellText() : before->second.front();
    for (ShellPiece& piece : either)
      if (!piece.branch) piece.branch = branch;
    if (either.empty()) either.push_back({"", branch->line, branch});
    if (value.empty()) value.emplace_back();
    ShellText& first = value.front();
    first.insert(first.begin(), {" ", branch->line, branch});
    first.insert(first.begin(), either.begin(), either.end());
    for (std::size_t i = 1; i < before->second.size(); ++i) value.push_back(before->second[i]);
  }
  values_[name] = std::move(value);
}

void ShellValues::assign(const ShellToken& word, const BranchPointer& given) {
  const std::size_t equals = word.text.find('=');
  const bool adds = word.text[equals - 1] == '+';
  const std::string name = word.text.substr(0, equals - (adds ? 1 : 0));
  const BranchPointer branch = word.branch ? word.branch : given;
  const std::string raw = word.text.substr(equals + 1);
  if (const std::size_t bracket = name.find('['); bracket != std::string::npos)
    return set_element(name.substr(0, bracket),
                       flat(whole(name.substr(bracket + 1, name.size() - bracket - 2), word.line, branch)),
                       whole(raw, word.line, branch), branch);
  ShellValue value;
  const bool is_list = raw.starts_with('(') && raw.ends_with(')');
  if (is_list) {
    const ShellText inside = shell_text(raw.substr(1, raw.size() - 2), word.line);
    for (const ShellToken& token : shell_tokens(inside, file_)) {
      if (token.kind != ShellToken::Kind::word) continue;
      const std::size_t keyed = token.text.starts_with('[') ? token.text.find("]=") : std::string::npos;
      if (keyed != std::string::npos)
        set_element(name, flat(whole(token.text.substr(1, keyed - 1), token.line, branch)),
                    whole(token.text.substr(keyed + 2), token.line, branch), branch);
      else
        for (ShellText& element : words(token, branch)) value.push_back(std::move(element));
    }
  } else {
    value.push_back(whole(raw, word.line, branch));
    if (branch && value.front().empty()) value.front().push_back({"", word.line, branch});
  }
  const ShellValue* before = find(name);
  if (!adds || before == nullptr) return set(name, std::move(value), adds ? nullptr : branch);
  ShellValue all = *before;
  if (is_list) {
    all.insert(all.end(), value.begin(), value.end());
  } else if (!value.empty()) {
    if (all.empty()) all.emplace_back();
    all.front().insert(all.front().end(), value.front().begin(), value.front().end());
  }
  set(name, std::move(all), nullptr);
}

// An element of a list by its number, or of a map by its key.
std::optional<ShellValue> ShellValues::element(const std::string& name, const std::string& key) const {
  if (const ShellValue* mapped = find(name + "[" + key + "]")) return *mapped;
  const ShellValue* list = find(name);
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (!list || error != std::errc() || end != key.data() + key.size() || index >= list->size())
    return std::nullopt;
  return ShellValue{(*list)[index]};
}

void ShellValues::set_element(const std::string& name, const std::string& key, ShellText text,
                              const BranchPointer& branch) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  const auto list = values_.find(name);
  const bool is_index = error == std::errc() && end == key.data() + key.size();
  if (is_index && list != values_.end() && index < list->second.size() && !branch) list->second[index] = text;
  set(name + "[" + key + "]", {std::move(text)}, branch);
}

// A command that computes from its words alone.
std::optional<ShellText> ShellValues::output(const std::string& command, int line) {
  constexpr std::size_t kLongestCommand = 2000;
  if (command.size() > kLongestCommand) return std::nullopt;
  ++depth_;
  std::vector<std::string> all;
  BranchPointer branch;
  for (const ShellToken& token : shell_tokens(shell_text(command, line), file_)) {
    if (token.kind != ShellToken::Kind::word) {
      all.push_back(token.text);
      continue;
    }
    for (const ShellText& word : words(token, nullptr)) {
      if (!branch) branch = branch_of(word);
      all.push_back(flat(word));
    }
  }
  --depth_;
  const std::optional<std::string> printed = branch ? std::nullopt : output_of(all);
  return printed ? std::optional(ShellText{{*printed, line, nullptr}}) : std::nullopt;
}

ShellValues::ShellValues(const std::string& file, const ShellInputs& inputs)
    : file_(file), given_(inputs.variables) {
  std::vector<ShellText> arguments;
  for (const std::string& argument : inputs.arguments) arguments.push_back({{argument, 0, nullptr}});
  has_arguments_ = !arguments.empty();
  push_arguments(arguments);
  for (const auto* variables : {&inputs.environment, &inputs.variables})
    for (const auto& [name, value] : *variables)
      values_[name] = {value.empty() ? ShellText() : ShellText{{value, 0, nullptr}}};
}

void ShellValues::add_environment(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables)
    if (!given_.contains(name)) values_[name] = {{{value, 0, nullptr}}};
}

// A value that the user hands in wins. One note says that another value gives way.
bool ShellValues::is_given(const std::string& name, const ShellValue& value, int line) {
  const auto given = given_.find(name);
  if (given == given_.end()) return false;
  const std::string other = value.empty() ? "" : flat(value.front());
  const bool differs = value.size() > 1 || (other != given->second && other.find('$') == std::string::npos);
  const std::string note = fmt::format("{}={} is handed in, in place of \"{}\" in line {}", name,
                                       given->second, other.substr(0, kLongestShown), line);
  if (differs && line > 0 && std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
  return true;
}

void ShellValues::push_arguments(const std::vector<ShellText>& arguments) {
  arguments_.push_back(arguments);
  write_arguments();
}

void ShellValues::replace_arguments(const std::vector<ShellText>& arguments) {
  has_arguments_ = has_arguments_ || arguments_.size() == 1;
  arguments_.back() = arguments;
  write_arguments();
}

void ShellValues::pop_arguments() {
  arguments_.pop_back();
  write_arguments();
}

void ShellValues::shift_arguments(std::size_t by) {
  std::vector<ShellText>& all = arguments_.back();
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(by, all.size())));
  write_arguments();
}

void ShellValues::write_arguments() {
  for (const char* all : {"@", "*", "#"}) values_.erase(all);
  for (std::size_t i = 1; i <= kMaxArguments; ++i) values_.erase(std::to_string(i));
  if (arguments_.empty() || (arguments_.size() == 1 && !has_arguments_)) return;
  const std::vector<ShellText>& arguments = arguments_.back();
  values_["@"] = values_["*"] = arguments;
  values_["#"] = {{{std::to_string(arguments.size()), 0, nullptr}}};
  // Missing arguments of the script stay undecided; those of a function are empty.
  const std::size_t count = arguments_.size() > 1 ? kMaxArguments : std::min(arguments.size(), kMaxArguments);
  for (std::size_t i = 0; i < count; ++i)
    values_[std::to_string(i + 1)] = {i < arguments.size() ? arguments[i] : ShellText()};
}

std::optional<std::int64_t> ShellValues::arithmetic(const std::string& expression, int depth) {
  if (depth > 8) return std::nullopt;
  return shell_arithmetic(expression, [&](const std::string& name) -> std::optional<std::int64_t> {
    const ShellValue* value = find(name);
    if (value == nullptr || value->empty() || branch_of(value->front())) return std::nullopt;
    return arithmetic(flat(value->front()), depth + 1);
  });
}

}  // namespace rehearse
