#include "frameworks/shell_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_words.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxLetters = 1 << 22;  // with variables written out, which may double each other
constexpr std::size_t kMaxArguments = 20;     // $1 to $20
constexpr std::size_t kLongestShown = 60;     // letters of a value
constexpr int kDeepestReference = 8;          // declare -n

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

}  // namespace

bool is_shell_name(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, is_name_letter);
}

void ShellValues::spend(std::size_t letters, int line) {
  spent_ += letters;
  if (spent_ > kMaxLetters)
    throw InputError({file_, fmt::format("line {}", line),
                      fmt::format("with its variables written out, a script has at most {} characters in all",
                                  kMaxLetters),
                      "", ""});
}

const std::string& ShellValues::resolved(const std::string& name) const {
  const std::string* target = &name;
  for (int depth = 0; depth < kDeepestReference && !scope_.references.empty(); ++depth) {
    const auto next = scope_.references.find(*target);
    if (next == scope_.references.end()) break;
    target = &next->second;
  }
  return *target;
}

const ShellValue* ShellValues::find(const std::string& name) const {
  const auto found = scope_.values.find(resolved(name));
  return found == scope_.values.end() ? nullptr : &found->second;
}

void ShellValues::store(const std::string& name, ShellValue value) {
  scope_.keys.erase(name);
  if (scope_.exports_all) scope_.exported.insert(name);
  scope_.values[name] = std::move(value);
}

void ShellValues::undecide(const std::string& name, int line, const std::string& command) {
  const std::string target = resolved(name);
  if (given_.contains(target) || scope_.constants.contains(target)) return;
  const std::string unset = "$" + target;
  const ShellBranch of{line, command + " sets " + unset, true};
  store(target, {{{unset, line, std::make_shared<const ShellBranch>(of), ShellOpen::words}}});
}

void ShellValues::lose(int line, const std::string& reason) {
  std::vector<std::string> names;
  for (const auto& [name, value] : scope_.values)
    if (is_shell_name(name)) names.push_back(name);
  for (const std::string& name : names) undecide(name, line, reason);
  scope_.lost = std::make_shared<const ShellBranch>(ShellBranch{line, reason});
  scope_.references.clear();
  for (std::vector<ShellText>& all : scope_.arguments) all = {{{"$@", line, scope_.lost, ShellOpen::words}}};
  write_arguments();
}

std::size_t ShellValues::count_open() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      scope_.values, [](const auto& each) { return !std::ranges::all_of(each.second, is_decided); }));
}

void ShellValues::declare(const std::string& name, const std::string& letters, bool is_local,
                          const BranchPointer& branch) {
  const auto has = [&](char letter) { return letters.find(letter) != std::string::npos; };
  if (scope_.constants.contains(name)) return;
  if (is_local && !scope_.locals.empty() && !given_.contains(name)) {
    std::vector<ShellScope::Saved>& own = scope_.locals.back();
    if (std::ranges::find(own, name, &ShellScope::Saved::name) == own.end()) {
      ShellScope::Saved saved{name, {},    {}, scope_.maps.contains(name), scope_.integers.contains(name),
                              {},   branch};
      if (const auto value = scope_.values.find(name); value != scope_.values.end())
        saved.value = value->second;
      if (const auto keys = scope_.keys.find(name); keys != scope_.keys.end()) saved.keys = keys->second;
      if (const auto to = scope_.references.find(name); to != scope_.references.end())
        saved.reference = to->second;
      own.push_back(std::move(saved));
      scope_.maps.erase(name);
      scope_.integers.erase(name);
      scope_.references.erase(name);
      store(name, {});
    }
  }
  if (has('A')) scope_.maps.insert(name);
  if (has('i')) scope_.integers.insert(name);
  if (has('l') || has('u') || has('c')) scope_.altered.insert(name);
  if (has('x')) scope_.exported.insert(name);
  if ((has('A') || has('a')) && find(name) == nullptr) store(name, {});
}

void ShellValues::make_constant(const std::string& name, const BranchPointer& branch) {
  (branch ? scope_.altered : scope_.constants).insert(resolved(name));
}

void ShellValues::restore(const ShellScope::Saved& saved) {
  const auto all_of = [](const ShellValue& value) { return flat(joined(value, nullptr)); };
  const auto now = scope_.values.find(saved.name);
  const std::string before = saved.value ? all_of(*saved.value) : "";
  const std::string after = now != scope_.values.end() ? all_of(now->second) : "";
  scope_.references.erase(saved.name);
  scope_.constants.erase(saved.name);
  scope_.altered.erase(saved.name);
  if (saved.reference) scope_.references[saved.name] = *saved.reference;
  saved.is_map ? void(scope_.maps.insert(saved.name)) : void(scope_.maps.erase(saved.name));
  saved.is_integer ? void(scope_.integers.insert(saved.name)) : void(scope_.integers.erase(saved.name));
  if (saved.branch && before != after)
    return undecide(saved.name, saved.branch->line, saved.branch->condition + " ... local");
  scope_.keys.erase(saved.name);
  if (!saved.value) return void(scope_.values.erase(saved.name));
  scope_.values[saved.name] = *saved.value;
  if (saved.keys) scope_.keys[saved.name] = *saved.keys;
}

void ShellValues::leave_exported(const std::vector<ShellText>& arguments) {
  std::erase_if(scope_.values, [&](const auto& each) { return !scope_.exported.contains(each.first); });
  scope_.keys.clear();
  scope_.maps.clear();
  scope_.integers.clear();
  scope_.constants.clear();
  scope_.altered.clear();
  scope_.references.clear();
  scope_.locals.clear();
  scope_.exports_all = false;
  scope_.arguments = {arguments};
  scope_.has_arguments = !arguments.empty();
  write_arguments();
}

ShellValues::ShellValues(const std::string& file, const ShellInputs& inputs)
    : file_(file), given_(inputs.variables) {
  std::vector<ShellText> arguments;
  for (const std::string& argument : inputs.arguments) arguments.push_back({{argument, 0, nullptr}});
  scope_.has_arguments = !arguments.empty();
  scope_.arguments.push_back(arguments);
  write_arguments();
  for (const auto* variables : {&inputs.environment, &inputs.variables})
    for (const auto& [name, value] : *variables) {
      scope_.values[name] = {value.empty() ? ShellText() : ShellText{{value, 0, nullptr}}};
      scope_.exported.insert(name);
    }
}

void ShellValues::add_environment(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    if (!given_.contains(name)) scope_.values[name] = {{{value, 0, nullptr}}};
    scope_.exported.insert(name);
  }
}

// A value that the user hands in wins. One note says that another value gives way.
bool ShellValues::is_given(const std::string& name, const ShellValue& value, int line) {
  if (scope_.constants.contains(name)) {
    notes_.push_back(fmt::format("line {}: {} is readonly: it keeps its value", line, name));
    return true;
  }
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
  scope_.arguments.push_back(arguments);
  scope_.locals.emplace_back();
  write_arguments();
}

void ShellValues::replace_arguments(const std::vector<ShellText>& arguments, const BranchPointer& branch) {
  scope_.has_arguments = scope_.has_arguments || scope_.arguments.size() == 1;
  std::vector<ShellText>& all = scope_.arguments.back();
  const std::size_t before = all.size();
  if (!branch || arguments.size() > before) all.resize(arguments.size());
  std::ranges::copy(arguments, all.begin());
  if (branch)  // either the old ones or the new
    for (ShellText& each : all) {
      if (each.empty()) each.push_back({"", branch->line, branch});
      for (ShellPiece& piece : each) {
        if (!piece.branch) piece.branch = branch;
        if (piece.open == ShellOpen::no) piece.open = ShellOpen::maybe;
      }
    }
  write_arguments();
}

void ShellValues::pop_arguments() {
  scope_.arguments.pop_back();
  const std::vector<ShellScope::Saved> own = std::move(scope_.locals.back());
  scope_.locals.pop_back();
  for (const ShellScope::Saved& saved : own) restore(saved);
  write_arguments();
}

void ShellValues::shift_arguments(std::size_t by, const BranchPointer& branch) {
  const std::vector<ShellText>& all = scope_.arguments.back();
  const auto first = std::ranges::find_if(all, is_many) - all.begin();
  // A shift by more arguments than there are shifts none.
  const auto begin =
      by > all.size() && static_cast<std::size_t>(first) == all.size() ? 0 : static_cast<std::ptrdiff_t>(by);
  if (begin > first) return replace_arguments({{{"$@", 0, branch, ShellOpen::words}}}, branch);
  replace_arguments({all.begin() + begin, all.end()}, branch);
}

const std::vector<ShellText>* ShellValues::arguments() const {
  const bool is_open = scope_.arguments.size() == 1 && !scope_.has_arguments;
  return is_open ? nullptr : &scope_.arguments.back();
}

void ShellValues::write_arguments() {
  for (const char* all : {"@", "*", "#"}) scope_.values.erase(all);
  for (std::size_t i = 1; i <= kMaxArguments; ++i) scope_.values.erase(std::to_string(i));
  if (arguments() == nullptr) return;
  const std::vector<ShellText>& all = *arguments();
  scope_.values["@"] = scope_.values["*"] = all;
  BranchPointer branch;
  for (const ShellText& each : all)
    if (!branch) branch = branch_of(each);
  const auto first = static_cast<std::size_t>(std::ranges::find_if(all, is_many) - all.begin());
  if (first == all.size() || branch) scope_.values["#"] = {{{std::to_string(all.size()), 0, branch}}};
  // Missing arguments of the script stay undecided; those of a function are empty.
  const bool is_function = scope_.arguments.size() > 1 && first == all.size();
  const std::size_t count = is_function ? kMaxArguments : std::min({all.size(), first + 1, kMaxArguments});
  for (std::size_t i = 0; i < count; ++i)
    scope_.values[std::to_string(i + 1)] = {i < all.size() ? all[i] : ShellText()};
}

std::optional<std::string> ShellValues::separators() const {
  const ShellValue* value = find("IFS");
  if (value == nullptr || value->empty()) return scope_.lost ? std::nullopt : std::optional(" \t\n");
  return is_decided(value->front()) ? std::optional(flat(value->front())) : std::nullopt;
}

}  // namespace rehearse
