#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_runner.h"

namespace rehearse {

namespace {

constexpr int kMaxTurns = 20'000;  // of a loop with a condition; behind them its values are open
constexpr int kMaxPasses = 8;      // over the body of a loop whose turns are open

// ((a; b; c))
std::vector<std::string> parts_of_head(const std::string& head) {
  std::vector<std::string> parts(1);
  for (std::size_t at = 2; at + 2 < head.size(); ++at)
    if (head[at] == ';')
      parts.emplace_back();
    else
      parts.back() += head[at];
  return parts;
}

}  // namespace

// A loop over known words runs for each of them. Over arguments that nobody hands in it does not run. Over
// other words its body runs undecided.
Decided ShellRunner::for_command(const Mode& mode) {
  const int line = cursor_.peek().line;
  const std::size_t begin = cursor_.at();
  const bool asks = cursor_.peek().is_word("select");
  cursor_.advance();
  const std::string name = cursor_.peek().text;
  cursor_.advance();
  if (name.starts_with("((") && name.ends_with("))")) return for_numbers(name, mode, line);
  std::vector<ShellText> over;
  const bool of_words = cursor_.take_word("in");
  if (!of_words && !mode.skips)
    over = values_.words({ShellToken::Kind::word, "\"$@\"", line, nullptr}, nullptr);
  if (of_words)
    for (; cursor_.at_word(); cursor_.advance())
      if (!mode.skips)
        for (ShellText& word : values_.words(cursor_.peek(), nullptr)) over.push_back(std::move(word));
  const bool is_known = !asks && std::ranges::all_of(over, is_decided);
  const std::string condition = cursor_.shown(begin, cursor_.at());
  const Mode inside = under(mode, is_known ? Decided::yes : Decided::unknown, line, condition);
  if (inside.skips) return loop_body(inside, line);
  if (is_known) return for_words(name, over, inside, line);
  if (is_shell_name(name)) values_.set(name, {joined(over, inside.branch)}, inside.branch);
  return undecided_body(inside, line);
}

Decided ShellRunner::for_words(const std::string& name, const std::vector<ShellText>& over, const Mode& mode,
                               int line) {
  if (over.empty()) return loop_body({true, nullptr}, line);
  const std::size_t body = cursor_.at();
  doubts_.loops.emplace_back();
  bool is_left = false;
  for (const ShellText& word : over) {
    cursor_.go(body);
    if (!is_left && is_at_limit(line, "for " + name, {})) {
      loop_body({true, nullptr}, line);
      break;
    }
    is_left = is_left || jumps_.stops;
    if (is_shell_name(name) && !is_left) values_.set(name, {word}, mode.branch ? mode.branch : doubt());
    loop_body(is_left ? Mode{true, nullptr} : mode, line);
    is_left = is_left || ends_loop();
  }
  doubts_.loops.pop_back();
  return Decided::unknown;
}

// for ((i = 0; i < N; i++))
Decided ShellRunner::for_numbers(const std::string& head, const Mode& mode, int line) {
  if (mode.skips) return loop_body(mode, line);
  const std::vector<std::string> parts = parts_of_head(head);
  const auto number = [&](std::size_t part, const BranchPointer& branch) -> std::optional<std::int64_t> {
    if (part >= parts.size() || parts[part].find_first_not_of(" \t\n") == std::string::npos) return 1;
    return values_.arithmetic(flat(values_.whole(parts[part], line, branch)), branch, line);
  };
  const std::size_t body = cursor_.at();
  number(0, mode.branch);
  doubts_.loops.emplace_back();
  for (int turn = 0;; ++turn) {
    cursor_.go(body);
    const auto goes_on =
        turn < kMaxTurns && !is_at_limit(line, "for " + head, {}) ? number(1, mode.branch) : std::nullopt;
    if ((goes_on && *goes_on == 0) || jumps_.stops) {
      loop_body({true, nullptr}, line);
      break;
    }
    const BranchPointer rest = doubts_.loops.back().rest;
    if (!goes_on || mode.branch || rest) {
      const Mode inside =
          under({false, mode.branch ? mode.branch : rest}, Decided::unknown, line, "for " + head);
      number(2, inside.branch);  // the body sees one of several values
      undecided_body(inside, line);
      break;
    }
    loop_body(mode, line);
    if (ends_loop()) break;
    number(2, mode.branch);
  }
  doubts_.loops.pop_back();
  return Decided::unknown;
}

// A loop whose condition is known each time runs as often. Otherwise its body may run or not. Without
// arguments from the user, none are left to read.
Decided ShellRunner::while_command(const Mode& mode) {
  const int line = cursor_.peek().line;
  const bool until = cursor_.peek().is_word("until");
  const std::size_t begin = cursor_.at();
  cursor_.advance();
  const std::size_t condition = cursor_.at();
  doubts_.loops.emplace_back();
  bool is_left = false;
  for (int turn = 0;; ++turn) {
    cursor_.go(condition);
    Decided holds = block(is_left ? Mode{true, nullptr} : mode);
    const std::string shown = cursor_.shown(begin, cursor_.at());
    const bool reads_arguments = shown.find("$#") != std::string::npos ||
                                 shown.find("getopt") != std::string::npos ||
                                 shown.find("\"$1\"") != std::string::npos;
    if (until) holds = negated(holds);
    if (holds == Decided::unknown && reads_arguments && values_.arguments() == nullptr) holds = Decided::no;
    if (holds == Decided::yes && !mode.skips && (turn >= kMaxTurns || is_at_limit(line, shown, {})))
      holds = Decided::unknown;
    if (is_left || jumps_.stops) holds = Decided::no;
    const BranchPointer rest = doubts_.loops.back().rest;
    if (holds != Decided::yes || mode.skips || mode.branch || rest) {
      const Mode inside = under({mode.skips, mode.branch ? mode.branch : rest}, holds, line, shown);
      inside.skips ? loop_body(inside, line) : undecided_body(inside, line);
      break;
    }
    loop_body(mode, line);
    is_left = ends_loop();
  }
  doubts_.loops.pop_back();
  return Decided::unknown;
}

Decided ShellRunner::loop_body(const Mode& mode, int line) {
  cursor_.require_word("do", line);
  block(mode);
  cursor_.require_word("done", line);
  return Decided::unknown;
}

// Any number of turns: until no further variable becomes open. Loops inside run once in each pass of the
// outermost.
Decided ShellRunner::undecided_body(const Mode& mode, int line) {
  const std::size_t body = cursor_.at(), kept = commands_.size();
  doubts_.loops.emplace_back();
  ++open_loops_;
  for (int pass = 1;; ++pass) {
    const std::size_t open = values_.count_open();
    commands_.resize(kept);
    cursor_.go(body);
    loop_body(mode, line);
    ends_loop();
    if (open_loops_ > 1 || values_.count_open() == open) break;
    if (pass < kMaxPasses) continue;
    values_.lose(line, "a loop");
    break;
  }
  --open_loops_;
  doubts_.loops.pop_back();
  return Decided::unknown;
}

// After a turn: whether `break` ends the loop.
bool ShellRunner::ends_loop() {
  doubts_.loops.back().turn = nullptr;
  if (jumps_.leaves > 0) {
    --jumps_.leaves;
    return true;
  }
  jumps_.continues = false;
  return false;
}

// `break N` and `continue N`
Decided ShellRunner::jump(const Call& call, const Mode& mode) {
  const std::size_t inside = doubts_.loops.size();
  if (inside == 0) return Decided::yes;
  const bool continues = call.name() == "continue";
  const auto [count, branch] = count_of(call, mode);
  const bool is_sure = branch == mode.branch;
  const std::size_t loops = is_sure ? std::clamp<std::size_t>(count, 1, inside) : inside;
  if (!branch) {
    jumps_.continues = continues;
    jumps_.leaves = static_cast<int>(loops) - (continues ? 1 : 0);
    return Decided::yes;
  }
  for (std::size_t i = 0; i < loops; ++i) {
    Loop& loop = doubts_.loops[inside - 1 - i];
    BranchPointer& doubtful = continues && is_sure && i + 1 == loops ? loop.turn : loop.rest;
    if (!doubtful) doubtful = branch;
  }
  return Decided::yes;
}

}  // namespace rehearse
