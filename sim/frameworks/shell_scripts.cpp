#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.h"
#include "frameworks/environment.h"
#include "frameworks/shell_runner.h"
#include "frameworks/shell_words.h"
#include "frameworks/slurm_job.h"

namespace rehearse {

namespace {

constexpr std::array kShells = {"bash", "sh", "/bin/bash", "/bin/sh", "sbatch"};
constexpr std::array kSubmit = {"sbatch", "qsub", "bsub"};
// They print nothing where they succeed.
constexpr std::array kSilent = {"cd",    "mkdir",   "export",  "set",      "shopt", "rm",
                                "touch", "chmod",   "sleep",   "wait",     "unset", "trap",
                                "local", "declare", "typeset", "readonly", "let"};

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
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

// "NAME=value" of `env NAME=value`, --export=ALL,NAME=value and --env=NAME=value.
std::vector<std::string> variables_of(const std::string& word) {
  std::vector<std::string> all;
  const bool is_option = word.starts_with("--e") && word.find('=') != std::string::npos;
  std::istringstream parts(is_option ? word.substr(word.find('=') + 1) : word);
  for (std::string part; std::getline(parts, part, is_option ? ',' : '\0');)
    if (is_shell_assignment(part)) all.push_back(part);
  return all;
}

}  // namespace

ShellText ShellRunner::body_of(const ShellToken& document) {
  const int line = document.line + 1;
  if (document.literal) return shell_text(document.text, line);
  return values_.whole("\"" + without_quoting(document.text) + "\"", line, document.branch);
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

// A text that this shell reads: its assignments stay.
Decided ShellRunner::nested(const ShellText& text, const Mode& mode) {
  const Jumps jumps = jumps_;
  script(text, mode);
  jumps_ = jumps;
  return Decided::unknown;
}

// A text that another shell reads. It sees the exported variables, and those before its command.
Decided ShellRunner::child(const Call& call, const ShellText& text, std::size_t arguments, const Mode& mode) {
  const Subshell inside(*this);
  std::vector<std::pair<std::string, BranchPointer>> own;
  for (const ShellWord& word : environment_) own.push_back({word.text, word.branch});
  for (const ShellText& word : call.words)
    for (const std::string& each : variables_of(flat(word))) own.push_back({each, branch_of(word)});
  const auto first = static_cast<std::ptrdiff_t>(std::min(arguments, call.words.size()));
  values_.leave_exported({call.words.begin() + first, call.words.end()});
  std::erase_if(functions_, [&](const auto& each) { return !exported_functions_.contains(each.first); });
  doubts_ = {};
  for (const auto& [word, branch] : own) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals - (word[equals - 1] == '+' ? 1 : 0));
    values_.declare(name, "x", false, nullptr);
    const ShellText value{{word.substr(equals + 1), call.line, branch}};
    values_.assign_text(name, false, value.front().text.empty() ? ShellText() : value, mode.branch,
                        call.line);
  }
  script(text, mode);
  return Decided::unknown;
}

// A job that the script writes has directives and an environment of its own.
Decided ShellRunner::submit(const Call& call, const ShellText& text, std::size_t arguments,
                            const Mode& mode) {
  const Subshell inside(*this);
  job_ = flat(text);
  values_.add_environment(slurm_job(job_).environment());
  return child(call, text, arguments, mode);
}

// sbatch "$0"
bool ShellRunner::submits_itself(const Call& call) const {
  if (!is_among(kSubmit, call.name())) return false;
  return std::ranges::any_of(call.words, [&](const ShellText& word) {
    const std::string text = flat(word);
    return text == "$0" || text.find("BASH_SOURCE") != std::string::npos ||
           (file_name(text) == file_name(file_) && !file_.empty());
  });
}

// Programs, and scripts that the script itself holds.
Decided ShellRunner::run_other(const Call& call, const Mode& mode) {
  const std::string name = call.name();
  const std::size_t at = text_of_shell(call.words);
  const ShellToken* document =
      call.input && call.input->kind == ShellToken::Kind::here_document ? call.input : nullptr;
  if (document && !document->written_to.empty())
    written_[file_name(flat(values_.whole(document->written_to, call.line, nullptr)))] = body_of(*document);
  if (capture_) {
    print(call, mode);
    return Decided::unknown;
  }
  if (submits_itself(call)) {
    submits_ = true;
    note(fmt::format("line {}: the script submits itself: the job that this starts is read", call.line));
    return Decided::yes;
  }
  if (document && name == "sbatch") return submit(call, body_of(*document), call.words.size(), mode);
  if (document && is_among(kShells, name)) return child(call, body_of(*document), call.words.size(), mode);
  if (const ShellText* script = written_script(call.words)) {
    const std::size_t place = name == "sbatch" || is_among(kShells, name) ? 2 : 1;
    const ShellText text = *script;
    return name == "sbatch" ? submit(call, text, place, mode) : child(call, text, place, mode);
  }
  if (at > 0) return launched(call, at, mode);
  keep(call, mode);
  return Decided::unknown;
}

// "srun -N 2 bash -c TEXT": the commands of the text have the launcher of their shell.
Decided ShellRunner::launched(const Call& call, std::size_t at, const Mode& mode) {
  const std::size_t outer = launcher_.size();
  for (const ShellText& word : call.words) {
    if (is_among(kShells, flat(word))) break;
    launcher_.push_back({flat(word), call.line, branch_of(word)});
  }
  const Decided status = child(call, call.words[at], at + 2, mode);
  launcher_.resize(outer);
  return status;
}

// The words that reach a program, with the variables of the libraries that its subshell alone has.
void ShellRunner::keep(const Call& call, const Mode& mode) {
  ShellCommand command{{}, call.line, mode.branch, {}, launcher_};
  if (subshells_ > 0)
    for (const auto& [name, value] : values_.all())
      if (value.size() == 1 && is_of_library(name))
        command.environment.push_back({name + "=" + flat(value.front()),
                                       value.front().empty() ? call.line : value.front().front().line,
                                       branch_of(value.front())});
  command.environment.insert(command.environment.end(), environment_.begin(), environment_.end());
  for (const ShellText& word : call.words)
    command.words.push_back({flat(word), word.empty() ? call.line : word.front().line, branch_of(word)});
  commands_.push_back(std::move(command));
}

// Runs a file that the script reads, where the user names it.
Decided ShellRunner::source(const std::string& path, int line, const Mode& mode) {
  const auto given = inputs_.files.find(file_name(path));
  if (given != inputs_.files.end()) return nested(shell_text(given->second, 1), mode);
  if (const auto own = written_.find(file_name(path)); own != written_.end())
    return nested(own->second, mode);
  if (path.starts_with("<(") && path.ends_with(')'))  // source <(command)
    if (const std::optional<ShellText> text = output_of_text(path.substr(2, path.size() - 3), line))
      return nested(*text, mode);
  note(fmt::format("line {}: {} is not read: pass --source FILE", line, path));
  return Decided::yes;
}

// $(...): commands that print known words.
std::optional<ShellText> ShellRunner::output_of_text(const std::string& command, int line) {
  constexpr int kDeepestOutput = 16;
  if (depth_ > kDeepestOutput) return std::nullopt;
  const Subshell inside(*this);
  doubts_ = {};
  Capture capture;
  Capture* const outer = std::exchange(capture_, &capture);
  const ShellCursor cursor = cursor_;
  const int depth = depth_, exit_line = exit_line_, open_loops = open_loops_;
  const bool submits = submits_, looks_ahead = looks_ahead_;
  const std::size_t kept = commands_.size(), environment = environment_.size(), launcher = launcher_.size();
  try {
    script(shell_text(command, line), {});
  } catch (const InputError&) {
    capture.is_known = false;
    cursor_ = cursor;
    depth_ = depth;
    open_loops_ = open_loops;
    environment_.resize(environment);
    launcher_.resize(launcher);
  }
  capture_ = outer;
  exit_line_ = exit_line;
  submits_ = submits;
  looks_ahead_ = looks_ahead;
  commands_.resize(kept);
  if (!capture.is_known) return std::nullopt;
  ShellText& text = capture.text;
  while (!text.empty()) {  // ends of lines at the end do not count
    std::string& last = text.back().text;
    last.erase(last.find_last_not_of('\n') + 1);
    if (!last.empty()) break;
    text.pop_back();
  }
  return std::move(text);
}

// Adds the output of a command to that of $(...).
void ShellRunner::print(const Call& call, const Mode& mode) {
  if (!call.shows || is_among(kSilent, call.name())) return;
  std::vector<std::string> words;
  bool is_known = !mode.branch;
  for (const ShellText& word : call.words) {
    is_known = is_known && !branch_of(word);
    words.push_back(flat(word));
  }
  const bool shows_input = call.name() == "cat" && call.words.size() == 1 && call.input;
  const auto input = shows_input ? input_of(*call.input) : std::nullopt;
  const auto printed = is_known && !shows_input ? output_of(words) : std::nullopt;
  if (is_known && input)
    append(capture_->text, *input);
  else if (printed)
    append(capture_->text, *printed, call.line, nullptr);
  else
    capture_->is_known = false;
}

}  // namespace rehearse
