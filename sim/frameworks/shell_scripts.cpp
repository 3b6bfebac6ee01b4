#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.h"
#include "frameworks/environment.h"
#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_runner.h"
#include "frameworks/shell_words.h"
#include "frameworks/slurm_job.h"

namespace rehearse {

namespace {

constexpr std::array kShells = {"bash", "sh", "/bin/bash", "/bin/sh", "sbatch"};
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

// A text that this shell reads: its assignments and jumps stay. `return` leaves a file alone.
Decided ShellRunner::nested(const ShellText& text, const Mode& mode, bool is_file) {
  if (is_at_limit(text.empty() ? 0 : text.front().line, "a text that runs", mode)) return Decided::unknown;
  if (!is_file) return script(text, mode);
  const Doubts doubts = doubts_;
  ++sourced_;
  Decided status = script(text, mode);
  --sourced_;
  status = jumps_.returns.value_or(status);
  jumps_.returns.reset();
  jumps_.stops = jumps_.exits;
  if (doubts_.returns && doubts_.returns != status) status = Decided::unknown;
  doubts_ = doubts;
  return status;
}

// A text that another shell reads. It sees the exported variables, and those before its command.
Decided ShellRunner::child(const Call& call, const ShellText& text, std::size_t arguments, const Mode& mode) {
  if (is_at_limit(call.line, shown(call), mode)) return Decided::unknown;
  const Subshell inside(*this);
  const int sourced = std::exchange(sourced_, 0);
  std::vector<std::pair<std::string, BranchPointer>> own;
  for (const ShellWord& word : environment_) own.push_back({word.text, word.branch});
  for (const ShellText& word : call.words)
    for (const std::string& each : variables_of(flat(word))) own.push_back({each, branch_of(word)});
  const auto first = static_cast<std::ptrdiff_t>(std::min(arguments, call.words.size()));
  values_.leave_exported({call.words.begin() + first, call.words.end()});
  std::erase_if(functions_, [&](const auto& each) { return !exported_functions_.contains(each.first); });
  doubts_ = {};
  abandoned_ = nullptr;
  for (const auto& [word, branch] : own) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals - (word[equals - 1] == '+' ? 1 : 0));
    values_.declare(name, "x", false, nullptr);
    const ShellText value{{word.substr(equals + 1), call.line, branch}};
    values_.assign_text(name, false, value.front().text.empty() ? ShellText() : value, mode.branch,
                        call.line);
  }
  script(text, mode);
  sourced_ = sourced;
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
    command.words.push_back({flat(word), word.empty() ? call.line : word.front().line, branch_of(word),
                             !std::ranges::all_of(word, &ShellPiece::has_letters)});
  commands_.push_back(std::move(command));
}

// Runs a file that the script reads, where the user names it.
Decided ShellRunner::source(const std::string& path, int line, const Mode& mode) {
  const auto given = inputs_.files.find(file_name(path));
  if (given != inputs_.files.end()) return nested(shell_text(given->second, 1), mode, true);
  if (const auto own = written_.find(file_name(path)); own != written_.end())
    return nested(own->second, mode, true);
  if (path.starts_with("<(") && path.ends_with(')'))  // source <(command)
    if (const std::optional<ShellText> text = output_of_text(path.substr(2, path.size() - 3), line))
      return nested(*text, mode, true);
  note(fmt::format("line {}: {} is not read: pass --source FILE", line, path));
  return Decided::yes;
}

// $(...): commands that print known words.
std::optional<ShellText> ShellRunner::output_of_text(const std::string& command, int line) {
  if (const std::optional<ShellText> counted = counted_output(command, line)) return counted;
  std::optional<ShellText> text = captured(command, line);
  while (text && !text->empty() && text->back().has_letters()) {  // ends of lines at the end do not count
    std::string& last = text->back().text;
    last.erase(last.find_last_not_of('\n') + 1);
    if (!last.empty()) break;
    text->pop_back();
  }
  return text;
}

std::optional<ShellText> ShellRunner::captured(const std::string& command, int line) {
  constexpr int kDeepestOutput = 150;
  const std::size_t first = command.find_first_not_of(" \t\n");
  if (depth_ > kDeepestOutput || (first != std::string::npos && command[first] == '<')) return std::nullopt;
  const Subshell inside(*this);
  doubts_ = {};
  Capture capture;
  Capture* const outer = std::exchange(capture_, &capture);
  const ShellCursor cursor = cursor_;
  const int depth = depth_, exit_line = exit_line_, open_loops = open_loops_, sourced = sourced_;
  const bool looks_ahead = looks_ahead_;
  const std::size_t kept = commands_.size(), environment = environment_.size(), launcher = launcher_.size();
  try {
    script(shell_text(command, line), {});
  } catch (const InputError&) {
    capture.is_known = false;
    cursor_ = cursor;
    depth_ = depth;
    open_loops_ = open_loops;
    sourced_ = sourced;
    environment_.resize(environment);
    launcher_.resize(launcher);
  }
  capture_ = outer;
  exit_line_ = exit_line;
  looks_ahead_ = looks_ahead;
  commands_.resize(kept);
  return capture.is_known ? std::optional(std::move(capture.text)) : std::nullopt;
}

// `echo "2 * 3" | bc`, and the number of lines or words that a command prints, where each is known to be one.
std::optional<ShellText> ShellRunner::counted_output(const std::string& command, int line) {
  const std::size_t pipe = command.find_last_of('|');
  if (pipe == std::string::npos || pipe == 0) return std::nullopt;
  std::string last = command.substr(pipe + 1);
  std::erase_if(last, [](char one) { return one == ' ' || one == '\n'; });
  if (last != "bc" && last != "wc-l" && last != "wc-w") return std::nullopt;
  const std::optional<ShellText> text = captured(command.substr(0, pipe), line);
  if (!text || branch_of(*text)) return std::nullopt;
  if (last == "bc") {
    const std::string terms = flat(*text);
    std::optional<std::string> sum =
        is_decided(*text) ? sum_of(terms.substr(0, terms.find_last_not_of('\n') + 1)) : std::nullopt;
    if (sum) sum->pop_back();
    return sum ? std::optional(ShellText{{*sum, line, nullptr}}) : std::nullopt;
  }
  std::string letters;
  for (const ShellPiece& piece : *text) {
    if (!piece.has_letters() && piece.open != ShellOpen::word) return std::nullopt;
    letters += piece.has_letters() ? piece.text : "x";
  }
  std::istringstream parts(letters);
  std::ptrdiff_t count = 0;
  for (std::string part; parts >> part;) ++count;
  if (last == "wc-l") count = std::ranges::count(letters, '\n');
  return ShellText{{std::to_string(count), line, nullptr}};
}

// `scontrol show hostnames`: a word for each node of the job.
std::optional<ShellText> ShellRunner::hosts_of(const Call& call) const {
  constexpr std::int64_t kMaxNodes = 100'000;
  const bool is_of_job =
      call.words.size() == 3 || (call.words.size() == 4 && flat(call.words[3]).starts_with("$SLURM_") &&
                                 flat(call.words[3]).ends_with("NODELIST"));
  const ShellValue* nodes = values_.find("SLURM_NNODES");
  if (call.name() != "scontrol" || !is_of_job || !flat(call.words[2]).starts_with("hostname") ||
      nodes == nullptr || nodes->empty() || !is_decided(nodes->front()))
    return std::nullopt;
  ShellText all;
  const ShellNumber count = shell_integer(flat(nodes->front()));
  if (!count || *count < 1 || *count > kMaxNodes) return std::nullopt;
  for (std::int64_t i = 0; i < *count; ++i) {
    all.push_back({"$(scontrol show hostnames)", call.line, nullptr, ShellOpen::word});
    append(all, "\n", call.line, nullptr);
  }
  return all;
}

// Adds the output of a command to that of $(...).
void ShellRunner::print(const Call& call, const Mode& mode) {
  if (!call.shows || is_among(kSilent, call.name())) return;
  std::vector<std::string> words;
  bool is_known = !mode.branch;
  for (const ShellText& word : call.words) {
    is_known = is_known && !branch_of(word) && !is_many(word);
    words.push_back(flat(word));
  }
  const bool shows_input = call.name() == "cat" && call.words.size() == 1 && call.input;
  const auto input = shows_input ? input_of(*call.input) : std::nullopt;
  const auto printed = is_known && !shows_input ? output_of(words) : std::nullopt;
  const auto hosts = mode.branch ? std::nullopt : hosts_of(call);
  if (hosts)
    append(capture_->text, *hosts);
  else if (is_known && input)
    append(capture_->text, *input);
  else if (printed)
    append(capture_->text, *printed, call.line, nullptr);
  else
    capture_->is_known = false;
}

}  // namespace rehearse
