#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_arithmetic.h"
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
      words.push_back(operand(token));  // an empty word stays one
    } else {
      for (ShellText& word : values_.words(token, mode.branch)) words.push_back(std::move(word));
    }
    if (is_among(kDeclare, name) && !mode.skips && token.text.starts_with('-'))
      words.push_back({{token.text, token.line, nullptr}});
  }
  if (mode.skips) return Decided::no;
  if (!words.empty()) return run_with({words, assignments, input, shows, line}, mode);
  for (const ShellToken& token : assignments) values_.assign(token, mode.branch);
  return Decided::yes;
}

Decided ShellRunner::run_with(const Call& call, const Mode& mode) {
  if (functions_.contains(call.name())) {
    const BranchPointer branch = mode.branch ? mode.branch : branch_of(call.words.front());
    const Decided status = call_function(call, {false, branch});
    return branch == mode.branch ? status : Decided::unknown;
  }
  const std::size_t outer = environment_.size();
  for (const ShellToken& token : call.assignments) {
    const ShellText text = values_.whole(token.text, token.line, mode.branch);
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
    for (std::size_t i = 1; i < words.size(); ++i) values_.unset(flat(words[i]), branch_of(words[i]));
    return Decided::yes;
  }
  if (name == "let" && words.size() > 1) return let(call, mode);
  if (name == "set") return set(call, mode);
  if (name == "shopt") return shopt(call, mode);
  if (name == "read") return read(call, mode);
  if (name == "mapfile" || name == "readarray") return mapfile(call, mode);
  if (name == "printf" && words.size() > 2 && flat(words[1]) == "-v") return printf(call, mode);
  if (name == "getopts" && words.size() > 2) return getopts(call, mode);
  if (is_among(kDeclare, name)) return Decided::yes;
  return std::nullopt;
}

void ShellRunner::note(const std::string& text) {
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(text);
}

// An operand of a condition: a variable that the script sets only in branches that do not run is empty.
ShellText ShellRunner::operand(const ShellToken& token) {
  ShellText value = values_.whole(token.text, token.line, nullptr);
  std::string name = flat(value);
  if (!name.starts_with('$')) return value;
  std::erase_if(name, [](char letter) { return letter == '$' || letter == '{' || letter == '}'; });
  if (!passed_over_.contains(name)) return value;
  note(fmt::format("line {}: ${} is set in no branch that runs: counted as empty; {}=VALUE sets it",
                   token.line, name, name));
  return {};
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
    if (one && branch_of(one->front())) return Decided::unknown;
    return one ? Decided::yes : Decided::no;
  }
  if (!is_shell_name(name)) return Decided::unknown;
  const ShellValue* value = values_.find(name);
  if (value == nullptr || value->empty()) return Decided::no;
  return branch_of(value->front()) ? Decided::unknown : Decided::yes;
}

Decided ShellRunner::sum(const std::string& text, int line, const Mode& mode) {
  if (text.size() < 4) return Decided::unknown;
  const auto value = values_.arithmetic(text.substr(2, text.size() - 4), mode.branch, line);
  return !value ? Decided::unknown : *value != 0 ? Decided::yes : Decided::no;
}

// Where the script ends in an undecided branch, its rest is assumed to run. The rest of a function may not.
Decided ShellRunner::stop(const Call& call, const Mode& mode) {
  const bool exits = call.name() == "exit";
  Decided status = Decided::unknown;
  if (call.words.size() > 1) {
    const std::string number = flat(call.words[1]);
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos)
      status = number.find_first_not_of('0') == std::string::npos ? Decided::yes : Decided::no;
  }
  if (submits_ && exits) return status;
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
