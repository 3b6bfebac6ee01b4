#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_pattern.h"
#include "frameworks/shell_runner.h"

namespace rehearse {

namespace {

constexpr std::array kComparesNumbers = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};

// By Slurm, PBS, MPI and torchrun.
bool is_of_launcher(const std::string& name) {
  for (const char* prefix : {"SLURM", "PBS", "OMPI", "PMI", "LSB", "MASTER", "NODE", "NNODE", "LOCAL"})
    if (name.starts_with(prefix)) return true;
  return name.find("RANK") != std::string::npos || name.find("WORLD") != std::string::npos ||
         name.find("GPU") != std::string::npos;
}

// These commands are taken to succeed, so a command behind && runs.
constexpr std::array kSucceed = {"cd",     "pushd", "popd", "mkdir", "export", "source", ".",
                                 "set",    "echo",  "rm",   "cp",    "mv",     "touch",  "chmod",
                                 "pip",    "pip3",  "git",  "sleep", "wait",   "module", "conda",
                                 "ulimit", "shopt", "pwd",  "ls",    "date",   "unset",  "hostname"};

constexpr std::array kDeclare = {"export", "declare", "local", "readonly", "typeset"};

}  // namespace

Decided ShellRunner::simple(const Mode& mode) {
  std::vector<ShellText> words;
  std::vector<ShellToken> assignments;  // before a command they are its own environment
  const ShellToken* input = nullptr;
  bool shows = true;
  const int line = cursor_.peek().line;
  for (; !cursor_.ends() && cursor_.peek().kind != ShellToken::Kind::op; cursor_.advance()) {
    const ShellToken& token = cursor_.peek();
    const std::string name = words.empty() ? "" : flat(words.front());
    if (token.is_redirection()) {
      shows = shows && token.kind != ShellToken::Kind::output;
      if (token.kind != ShellToken::Kind::output) input = &token;
    } else if (mode.skips) {
      if (is_shell_assignment(token.text) && !looks_ahead_)
        passed_over_.insert(token.text.substr(0, token.text.find('=')));
    } else if (words.empty() && is_shell_assignment(token.text)) {
      assignments.push_back(token);
    } else if (is_among(kDeclare, name)) {
      declare(words, token, mode);
    } else if (name == "[" || name == "test") {
      for (ShellText& word : operands(token)) words.push_back(std::move(word));
    } else {
      for (ShellText& word : values_.words(token, mode.branch)) words.push_back(std::move(word));
    }
    if (is_among(kDeclare, name) && !mode.skips && token.text.starts_with('-'))
      words.push_back({{token.text, token.line, nullptr}});
  }
  if (mode.skips) return Decided::no;
  if (!words.empty()) return run_with({words, assignments, input, shows, line}, mode);
  for (const ShellToken& token : assignments) assign(token, mode);
  return Decided::yes;
}

// Bash leaves the rest of the line where a variable is readonly.
void ShellRunner::assign(const ShellToken& token, const Mode& mode) {
  const std::string name = token.text.substr(0, token.text.find_first_of("=+["));
  if (values_.is_constant(name) && !abandoned_)
    abandoned_ = std::make_shared<const ShellBranch>(ShellBranch{token.line, "readonly " + name});
  values_.assign(token, mode.branch);
}

Decided ShellRunner::run_with(const Call& call, const Mode& mode) {
  if (functions_.contains(call.name())) {
    const BranchPointer branch = mode.branch ? mode.branch : branch_of(call.words.front());
    const Decided status = call_function(call, {false, branch});
    return branch == mode.branch ? status : Decided::unknown;
  }
  const std::size_t outer = environment_.size();
  for (const ShellToken& token : call.assignments) {
    const ShellText text = values_.assigned(token.text, token.line, mode.branch);
    environment_.push_back({flat(text), token.line, branch_of(text)});
  }
  const Decided status = run_words(call, mode);
  environment_.resize(outer);
  return status;
}

// Which command runs may itself depend on a branch.
Decided ShellRunner::run_words(const Call& call, const Mode& mode) {
  const BranchPointer branch = mode.branch ? nullptr : branch_of(call.words.front());
  const std::optional<Decided> status = run_of_shell(call, branch ? Mode{false, branch} : mode);
  if (status) return branch ? Decided::unknown : *status;
  const Decided other = run_other(call, mode);
  return is_among(kSucceed, call.name()) ? Decided::yes : other;
}

std::optional<Decided> ShellRunner::run_of_shell(const Call& call, const Mode& mode) {
  const std::string name = call.name();
  const std::vector<ShellText>& words = call.words;
  if (name == "true" || name == ":") return Decided::yes;
  if (name == "false") return Decided::no;
  if (name == "[" || name == "test") return test(words, name == "[");
  if (name.starts_with("((")) return sum(name, call.line, mode);
  if (name == "exit" || name == "return") return stop(call, mode);
  if ((name == "source" || name == ".") && words.size() > 1) return source(flat(words[1]), call.line, mode);
  if (name == "break" || name == "continue") return jump(call, mode);
  if (name == "eval") return nested(joined({words.begin() + 1, words.end()}, nullptr), mode);
  if ((name == "command" || name == "builtin" || name == "exec") && words.size() > 1 &&
      !flat(words[1]).starts_with('-')) {
    const std::vector<ShellText> rest(words.begin() + 1, words.end());
    return run_words({rest, call.assignments, call.input, call.shows, call.line}, mode);
  }
  return run_builtin(call, mode);
}

// Commands that set variables.
std::optional<Decided> ShellRunner::run_builtin(const Call& call, const Mode& mode) {
  const std::string name = call.name();
  const std::vector<ShellText>& words = call.words;
  if (name == "shift") {
    const auto [count, branch] = count_of(call, mode);
    values_.shift_arguments(count, branch);
    return Decided::yes;
  }
  if (name == "unset") {
    const bool is_function = words.size() > 1 && flat(words[1]) == "-f";
    for (std::size_t i = 1; i < words.size(); ++i)
      if (!is_function)
        values_.unset(flat(words[i]), branch_of(words[i]));
      else if (!mode.branch)
        functions_.erase(flat(words[i]));
    return Decided::yes;
  }
  if (name == "let" && words.size() > 1) return let(call, mode);
  if (name == "set") return set(call, mode);
  if (name == "shopt") return shopt(call), Decided::yes;
  if (name == "read") return read(call, mode);
  if (name == "mapfile" || name == "readarray") return mapfile(call, mode);
  if (name == "printf" && words.size() > 3 && flat(words[1]) == "-v") return printf(call, mode);
  if (name == "getopts" && words.size() > 2) {
    for (const std::string& each : {flat(words[2]), std::string("OPTARG"), std::string("OPTIND")})
      undecide(call, each);
    return Decided::unknown;
  }
  if (is_among(kDeclare, name)) return Decided::yes;
  return std::nullopt;
}

void ShellRunner::note(const std::string& text) {
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(text);
}

// An operand of a condition: a variable that the script sets only in branches that do not run is empty.
bool ShellRunner::is_passed_over(const ShellText& value, int line) {
  const std::string name = unset_name(value);
  if (!passed_over_.contains(name)) return false;
  note(fmt::format("line {}: ${} is set in no branch that runs: counted as empty; {}=VALUE sets it", line,
                   name, name));
  return true;
}

// Of [ ]: an empty word without quotes is none.
std::vector<ShellText> ShellRunner::operands(const ShellToken& token) {
  std::vector<ShellText> words = values_.words(token, nullptr);
  if (words.size() != 1 || !is_passed_over(words.front(), token.line)) return words;
  return token.text.starts_with('"') ? std::vector<ShellText>(1) : std::vector<ShellText>();
}

// Of [[ ]].
ShellText ShellRunner::operand(const ShellToken& token) {
  ShellText value = values_.whole(token.text, token.line, nullptr);
  return is_passed_over(value, token.line) ? ShellText() : value;
}

// [[ $NAME -eq 1 ]]: the shell takes a variable that nobody sets as 0. Those that a launcher sets stay open.
void ShellRunner::count_unset(std::vector<ShellText>& words, int line) {
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (!is_among(kComparesNumbers, flat(words[i]))) continue;
    for (ShellText* side : {&words[i - 1], &words[i + 1]}) {
      const std::string name = unset_name(*side);
      if (!is_shell_name(name) || is_of_launcher(name)) continue;
      *side = {{"0", line, nullptr}};
      note(fmt::format("line {}: ${} is not set: the shell compares it as 0; {}=VALUE sets it", line, name,
                       name));
    }
  }
}

// The last expression decides.
Decided ShellRunner::let(const Call& call, const Mode& mode) {
  Decided last = Decided::unknown;
  for (std::size_t i = 1; i < call.words.size(); ++i)
    last = sum("((" + flat(call.words[i]) + "))", call.line, mode);
  return last;
}

// N of `shift N` and `break N`, and the branch under which it is that number.
std::pair<std::size_t, BranchPointer> ShellRunner::count_of(const Call& call, const Mode& mode) const {
  if (call.words.size() < 2) return {1, mode.branch};
  const ShellNumber number = shell_integer(flat(call.words[1]));
  const BranchPointer of = branch_of(call.words[1]) ? branch_of(call.words[1]) : mode.branch;
  if (number && *number >= 0) return {static_cast<std::size_t>(*number), of};
  return {1, of ? of : std::make_shared<const ShellBranch>(ShellBranch{call.line, shown(call)})};
}

Decided ShellRunner::double_brackets(const Mode& mode) {
  std::vector<ShellText> words;
  const int line = cursor_.peek().line;
  for (cursor_.advance(); !cursor_.peek().is_word("]]"); cursor_.advance()) {
    if (cursor_.ends()) cursor_.fail(line, "\"[[\" is not closed by \"]]\"");
    const ShellToken& next = cursor_.peek();
    if (mode.skips || next.is("\n")) continue;
    const std::string sign = words.empty() ? "" : flat(words.back());
    if (!cursor_.at_word())
      words.push_back({{next.text, line, nullptr}});
    else if (sign == "==" || sign == "=" || sign == "!=" || sign == "=~")
      words.push_back(values_.pattern(next.text, next.line, sign == "=~"));
    else
      words.push_back(operand(next));
  }
  cursor_.advance();
  if (mode.skips) return Decided::no;
  count_unset(words, line);
  const Decided holds = shell_condition(
      words, true, [this](const std::string& name) { return is_set(name); }, may_ignore_case_);
  if (std::ranges::none_of(words, [](const ShellText& word) { return flat(word) == "=~"; })) return holds;
  values_.undecide("BASH_REMATCH", line, "[[ ... =~ ... ]]");
  std::vector<std::string> groups;
  if (words.size() != 3 || holds == Decided::unknown || mode.branch || may_ignore_case_) return holds;
  shell_regex(flat(words[2]), flat(words[0]), &groups);
  ShellValue found;
  for (const std::string& group : groups) found.push_back({{group, line, nullptr}});
  values_.set("BASH_REMATCH", std::move(found), nullptr);
  return holds;
}

Decided ShellRunner::test(const std::vector<ShellText>& words, bool brackets) {
  const std::ptrdiff_t last = brackets && words.size() > 1 && flat(words.back()) == "]" ? 1 : 0;
  return shell_condition({words.begin() + 1, words.end() - last}, false,
                         [this](const std::string& name) { return is_set(name); });
}

// As -n "$NAME": a variable that neither the script nor the user sets counts as not set. Of an array the
// first element counts (bash manual, "Bash Conditional Expressions").
Decided ShellRunner::is_set(const std::string& name) const {
  if (name.ends_with(']')) {
    const std::size_t bracket = name.find('[');
    const std::string array = name.substr(0, bracket),
                      key = name.substr(bracket + 1, name.size() - bracket - 2);
    if (key == "@" || key == "*") return is_set(array);
    const std::optional<ShellValue> one = values_.element(array, key);
    if (one && !is_decided(one->front())) return Decided::unknown;
    return one ? Decided::yes : Decided::no;
  }
  if (!is_shell_name(name)) return Decided::unknown;
  const ShellValue* value = values_.find(name);
  if (value == nullptr && values_.scope().lost) return Decided::unknown;
  if (value == nullptr || value->empty()) return Decided::no;
  return branch_of(value->front()) || is_many(value->front()) ? Decided::unknown : Decided::yes;
}

Decided ShellRunner::sum(const std::string& text, int line, const Mode& mode) {
  if (text.size() < 4) return Decided::unknown;
  const auto value = values_.arithmetic(text.substr(2, text.size() - 4), mode.branch, line);
  return !value ? Decided::unknown : *value != 0 ? Decided::yes : Decided::no;
}

// Where the script ends in an undecided branch, its rest is assumed to run. The rest of a function may not.
Decided ShellRunner::stop(const Call& call, const Mode& mode) {
  const bool exits = call.name() == "exit";
  if (!exits && !values_.is_in_function() && sourced_ == 0) return Decided::no;  // an error
  Decided status = Decided::unknown;
  if (call.words.size() > 1) {
    const std::string number = flat(call.words[1]);
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos)
      status = number.find_first_not_of('0') == std::string::npos ? Decided::yes : Decided::no;
  }
  if (mode.branch) {
    if (exits) return Decided::yes;
    if (!doubts_.function) doubts_.function = mode.branch;
    doubts_.returns = doubts_.returns.value_or(status) == status ? status : Decided::unknown;
    return status;
  }
  jumps_.stops = true;
  jumps_.exits = jumps_.exits || exits;
  if (!exits) jumps_.returns = status;
  if (exits && exit_line_ == 0) {
    exit_line_ = call.line;
    exit_condition_ = taken_;
  }
  return status;
}

}  // namespace rehearse
