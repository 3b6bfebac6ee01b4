#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_runner.h"
#include "frameworks/slurm_job.h"

namespace rehearse {

namespace {

constexpr std::array kShells = {"bash", "sh", "/bin/bash", "/bin/sh", "sbatch"};
constexpr std::array kComparesNumbers = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};

// By Slurm, PBS, MPI and torchrun.
bool is_of_launcher(const std::string& name) {
  for (const char* prefix : {"SLURM", "PBS", "OMPI", "PMI", "LSB", "MASTER", "NODE", "NNODE", "LOCAL"})
    if (name.starts_with(prefix)) return true;
  return name.find("RANK") != std::string::npos || name.find("WORLD") != std::string::npos ||
         name.find("GPU") != std::string::npos;
}

template <typename List>
bool is_among(const List& list, const std::string& word) {
  return std::ranges::find(list, word) != std::end(list);
}

// These commands are taken to succeed, so a command behind && runs.
constexpr std::array kSucceed = {"cd",     "pushd", "popd", "mkdir", "export", "source", ".",
                                 "set",    "echo",  "rm",   "cp",    "mv",     "touch",  "chmod",
                                 "pip",    "pip3",  "git",  "sleep", "wait",   "module", "conda",
                                 "ulimit", "shopt", "pwd",  "ls",    "date",   "unset",  "hostname"};

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// Where words such as `bash -euo pipefail -c` take a script from the next word; 0: nowhere.
std::size_t text_of_shell(const std::vector<ShellText>& words) {
  bool is_shell = false, has_value = false;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string word = flat(words[i]);
    const bool is_option = is_shell && word.starts_with('-') && !word.starts_with("--");
    if (is_option && word.ends_with('c')) return i + 1;
    is_shell = is_among(kShells, word) || is_option || has_value;
    has_value = is_option && word.ends_with('o');
  }
  return 0;
}

// In a here-document quotes stand for themselves, but for those inside $(...) and ${...}.
std::string without_quoting(const std::string& body) {
  std::string text;
  int depth = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    const char letter = body[at], next = at + 1 < body.size() ? body[at + 1] : '\0';
    const bool opens = letter == '$' && (next == '(' || next == '{');
    const bool escapes = letter == '\\' && next != '\0';
    if (opens || (depth > 0 && (letter == '(' || letter == '{'))) ++depth;
    if (depth > 0 && (letter == ')' || letter == '}')) --depth;
    if (depth == 0 && (letter == '"' || (escapes && next == '"'))) text += '\\';
    text += letter;
    if (escapes && next == '"' && depth == 0) text += '\\';
    if (opens || escapes) text += body[++at];
  }
  return text;
}

constexpr std::array kAssign = {"export", "declare", "local", "readonly", "typeset"};

}  // namespace

Decided ShellRunner::simple(const Mode& mode) {
  std::vector<ShellText> words;
  std::vector<ShellToken> assignments;  // before a command they are its own environment
  const ShellToken* document = nullptr;
  const int line = cursor_.peek().line;
  for (; !cursor_.ends() && cursor_.peek().kind != ShellToken::Kind::op; cursor_.advance()) {
    const ShellToken& token = cursor_.peek();
    const std::string name = words.empty() ? "" : flat(words.front());
    if (token.kind == ShellToken::Kind::here_document) {
      document = &token;
    } else if (mode.skips) {
      if (is_shell_assignment(token.text)) passed_over_.insert(token.text.substr(0, token.text.find('=')));
    } else if (words.empty() && is_shell_assignment(token.text)) {
      assignments.push_back(token);
    } else if (is_among(kAssign, name) && is_shell_assignment(token.text)) {
      values_.assign(token, mode.branch);
    } else if (name == "[" || name == "test") {
      words.push_back(operand(token));  // an empty word stays one
    } else {
      for (ShellText& word : values_.words(token, mode.branch)) words.push_back(std::move(word));
    }
  }
  if (mode.skips) return Decided::no;
  if (!words.empty()) return run_with(assignments, words, document, line, mode);
  for (const ShellToken& token : assignments) values_.assign(token, mode.branch);
  return Decided::yes;
}

Decided ShellRunner::run_with(const std::vector<ShellToken>& assignments, const std::vector<ShellText>& words,
                              const ShellToken* document, int line, const Mode& mode) {
  const std::size_t outer = environment_.size();
  for (const ShellToken& token : assignments) {
    const ShellText text = values_.whole(token.text, token.line, mode.branch);
    environment_.push_back({flat(text), token.line, branch_of(text)});
  }
  const Decided status = run_words(words, document, line, mode);
  environment_.resize(outer);
  return status;
}

Decided ShellRunner::run_words(const std::vector<ShellText>& words, const ShellToken* document, int line,
                               const Mode& mode) {
  const std::string name = flat(words.front());
  if (name == "true" || name == ":") return Decided::yes;
  if (name == "false") return Decided::no;
  if (name == "[" || name == "test") return test(words, name == "[");
  if (name.starts_with("((")) return sum(name);
  if (functions_.contains(name)) return call(name, {words.begin() + 1, words.end()}, mode);
  if (name == "exit" || name == "return") return stop(name == "exit", line, mode);
  if ((name == "source" || name == ".") && words.size() > 1) return source(flat(words[1]), line, mode);
  if (name == "break" || name == "continue")
    return broke_ = broke_ || (name == "break" && !mode.branch), Decided::yes;
  if (name == "shift")
    return values_.shift_arguments(words.size() > 1 ? shift_of(flat(words[1])) : 1), Decided::yes;
  if (name == "unset")
    for (std::size_t i = 1; i < words.size(); ++i) values_.unset(flat(words[i]));
  if (name == "eval") return nested(joined({words.begin() + 1, words.end()}, nullptr), mode);
  if (name == "let" && words.size() > 1) return let(flat(words[1]), line, mode);
  if (name == "set" && words.size() > 1 && flat(words[1]) == "--")
    values_.replace_arguments({words.begin() + 2, words.end()});
  if (name == "read" && document) values_.set(flat(words.back()), {body_of(*document)}, mode.branch);
  if (document && !document->written_to.empty())
    written_[file_name(flat(values_.whole(document->written_to, line, nullptr)))] = body_of(*document);
  if (document && name == "sbatch") return submit(body_of(*document), mode);
  if (document && is_among(kShells, name)) return nested(body_of(*document), mode);
  if (const ShellText* script = written_script(words))
    return name == "sbatch" ? submit(*script, mode) : nested(*script, mode);
  if (const std::size_t at = text_of_shell(words); at > 0) return nested(words[at], mode);
  keep(words, line, mode);
  return is_among(kSucceed, name) || is_among(kAssign, name) ? Decided::yes : Decided::unknown;
}

// An operand of a condition: a variable that the script sets only in branches that do not run is empty.
ShellText ShellRunner::operand(const ShellToken& token) {
  ShellText value = values_.whole(token.text, token.line, nullptr);
  std::string name = flat(value);
  if (!name.starts_with('$')) return value;
  std::erase_if(name, [](char letter) { return letter == '$' || letter == '{' || letter == '}'; });
  if (!passed_over_.contains(name)) return value;
  const std::string note =
      fmt::format("line {}: ${} is set in no branch that runs: counted as empty; {}=VALUE sets it",
                  token.line, name, name);
  if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
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
      const std::string note = fmt::format(
          "line {}: ${} is not set: the shell compares it as 0; {}=VALUE sets it", line, name, name);
      if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
    }
  }
}

// NAME=expression.
Decided ShellRunner::let(const std::string& text, int line, const Mode& mode) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos || !is_shell_name(name)) return Decided::unknown;
  const auto value = values_.arithmetic(text.substr(equals + 1));
  const std::string shown = value ? std::to_string(*value) : "$((" + text.substr(equals + 1) + "))";
  values_.set(name, {{{shown, line, nullptr}}}, mode.branch);
  return Decided::yes;
}

std::size_t ShellRunner::shift_of(const std::string& word) {
  return word.size() == 1 && word[0] >= '0' && word[0] <= '9' ? static_cast<std::size_t>(word[0] - '0') : 1;
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
    return values_.element(array, key) ? Decided::yes : Decided::no;
  }
  if (!is_shell_name(name)) return Decided::unknown;
  const ShellValue* value = values_.find(name);
  if (value == nullptr || value->empty()) return Decided::no;
  return branch_of(value->front()) ? Decided::unknown : Decided::yes;
}

Decided ShellRunner::sum(const std::string& text) {
  if (text.size() < 4) return Decided::unknown;
  std::string inside = text.substr(2, text.size() - 4);
  std::erase(inside, ' ');
  for (const char* step : {"++", "--"})
    if (inside.size() > 2 && (inside.ends_with(step) || inside.starts_with(step))) {
      const std::string name =
          inside.ends_with(step) ? inside.substr(0, inside.size() - 2) : inside.substr(2);
      return let(name + "=" + name + step[0] + "1", 0, {});
    }
  const std::size_t equals = inside.find('=');
  if (equals != std::string::npos && is_shell_name(inside.substr(0, equals)) &&
      inside.compare(equals, 2, "==") != 0)
    return let(inside, 0, {});
  const auto value = values_.arithmetic(text.substr(2, text.size() - 4));
  return !value ? Decided::unknown : *value != 0 ? Decided::yes : Decided::no;
}

// The here-document that the command runs as a script: `bash FILE`, `sbatch FILE` or `./FILE`.
const ShellText* ShellRunner::written_script(const std::vector<ShellText>& words) const {
  const bool by_shell = is_among(kShells, flat(words.front()));
  for (std::size_t i = by_shell ? 1 : 0; i < words.size() && (by_shell || i == 0); ++i) {
    const auto found = written_.find(file_name(flat(words[i])));
    if (found != written_.end()) return &found->second;
  }
  return nullptr;
}

// A job that the script writes has directives and an environment of its own.
Decided ShellRunner::submit(const ShellText& text, const Mode& mode) {
  job_ = flat(text);
  values_.add_environment(slurm_job(job_).environment());
  return nested(text, mode);
}

// Where the script ends in an undecided branch, its rest is assumed to run.
Decided ShellRunner::stop(bool exits, int line, const Mode& mode) {
  if (mode.branch) return Decided::yes;
  stopped_ = true;
  exited_ = exited_ || exits;
  if (exits && exit_line_ == 0) {
    exit_line_ = line;
    exit_condition_ = taken_;
  }
  return Decided::yes;
}

ShellText ShellRunner::body_of(const ShellToken& document) {
  const int line = document.line + 1;
  if (document.literal) return shell_text(document.text, line);
  return values_.whole("\"" + without_quoting(document.text) + "\"", line, document.branch);
}

Decided ShellRunner::nested(const ShellText& text, const Mode& mode) {
  const bool stopped = stopped_, exited = exited_;
  script(text, mode);
  stopped_ = stopped;
  exited_ = exited;
  return Decided::unknown;
}

void ShellRunner::keep(const std::vector<ShellText>& words, int line, const Mode& mode) {
  ShellCommand command{{}, line, mode.branch, environment_};
  for (const ShellText& word : words)
    command.words.push_back({flat(word), word.empty() ? line : word.front().line, branch_of(word)});
  commands_.push_back(std::move(command));
}

// Runs a file that the script reads, where the user names it.
Decided ShellRunner::source(const std::string& path, int line, const Mode& mode) {
  const auto given = inputs_.files.find(file_name(path));
  if (given != inputs_.files.end()) return nested(shell_text(given->second, 1), mode);
  if (const auto own = written_.find(file_name(path)); own != written_.end())
    return nested(own->second, mode);
  const std::string note = fmt::format("line {}: {} is not read: pass --source FILE", line, path);
  if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
  return Decided::yes;
}

}  // namespace rehearse
