#include "frameworks/shell_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_pattern.h"
#include "frameworks/shell_runner.h"

namespace rehearse {

namespace {

constexpr int kMaxCommands = 100'000;   // of a script with its functions called
constexpr int kDeepestShellCall = 200;  // blocks, functions and scripts inside each other
constexpr int kDeepestOpenCall = 40;    // the same in a branch, where a function may call itself without end
constexpr int kDeepestBlock = 300;      // blocks alone
constexpr int kDepthOfScript = 2;
constexpr std::array kEndOfBlock = {"then", "elif", "else", "fi", "do", "done", "esac", "}"};

bool ends_block(const std::string& word) {
  return std::ranges::find(kEndOfBlock, word) != kEndOfBlock.end();
}

}  // namespace

ShellRunner::ShellRunner(const std::string& file, const ShellInputs& inputs)
    : file_(file),
      inputs_(inputs),
      values_(file, inputs),
      cursor_(file, std::make_shared<std::vector<ShellToken>>()) {
  values_.set_output([this](const std::string& command, int line) { return output_of_text(command, line); });
}

ShellRunner::Mode ShellRunner::under(const Mode& mode, Decided decided, int line,
                                     const std::string& condition) {
  if (mode.skips || decided == Decided::no) return {true, nullptr};
  if (decided == Decided::yes || mode.branch) return mode;  // the outer one is named
  return {false, std::make_shared<const ShellBranch>(ShellBranch{line, condition})};
}

ShellRun ShellRunner::run(const ShellText& text) {
  script(text, {});
  notes_.insert(notes_.end(), values_.notes().begin(), values_.notes().end());
  std::map<std::string, std::string> written;
  for (const auto& [name, document] : written_) written[name] = flat(document);
  return {std::move(commands_), values_.all(),      exit_line_,       exit_condition_,
          std::move(job_),      std::move(written), std::move(notes_)};
}

void ShellRunner::deeper() {
  if (++depth_ > kDeepestBlock) cursor_.fail(std::max(1, cursor_.peek().line), "blocks nest too deep");
}

// Whether functions, scripts and commands are more than any script has. What follows is then not run: all
// variables are open behind it.
bool ShellRunner::is_at_limit(int line, const std::string& what, const Mode& mode) {
  const int deepest = mode.branch ? kDeepestOpenCall : kDeepestShellCall;
  if (depth_ < deepest && count_ < kMaxCommands) return false;
  const std::string reason = depth_ < deepest ? fmt::format("more than {} commands", kMaxCommands)
                                              : fmt::format("calls nest deeper than {}", deepest);
  note(fmt::format("line {}: {}: {} is not read, and the text decides no variable behind it", line, reason,
                   what));
  values_.lose(line, fmt::format("{} ({})", what, reason));
  if (capture_) capture_->is_known = false;
  return true;
}

Decided ShellRunner::script(const ShellText& text, const Mode& mode) {
  values_.spend(flat(text).size(), text.empty() ? 0 : text.front().line);
  auto tokens = std::make_shared<const std::vector<ShellToken>>(shell_tokens(text, file_));
  return elsewhere(std::move(tokens), [&] {
    Decided status = Decided::yes;
    while (!cursor_.ends()) {
      status = block(mode);
      if (!cursor_.ends()) cursor_.advance();  // a keyword or bracket that closes nothing
    }
    return status;
  });
}

// The branch that may have left the commands which follow.
BranchPointer ShellRunner::doubt() const {
  if (abandoned_) return abandoned_;
  for (const Loop& loop : doubts_.loops)
    if (loop.rest || loop.turn) return loop.rest ? loop.rest : loop.turn;
  return doubts_.function;
}

// Runs commands up to the keyword or bracket that ends the block.
Decided ShellRunner::block(const Mode& mode) {
  deeper();
  Decided status = mode.skips ? Decided::no : Decided::yes;
  for (cursor_.skip_blank_lines(); !cursor_.ends(); cursor_.skip_blank_lines()) {
    const ShellToken& next = cursor_.peek();
    if (next.is(")") || next.is(";;") || next.is(";&") || next.is(";;&") ||
        (cursor_.at_word() && ends_block(next.text)))
      break;
    if (depth_ == kDepthOfScript && cursor_.at_line_begin()) abandoned_ = nullptr;
    Mode each = mode;
    if (jumps_.stops || jumps_.leaves > 0 || jumps_.continues) each = {true, nullptr};
    if (!each.skips && !each.branch) each.branch = doubt();
    const std::size_t before = cursor_.at();
    const Decided last = list(each);
    if (!each.skips) status = last;
    if (cursor_.at() == before) cursor_.advance();
  }
  --depth_;
  return status;
}

// Commands joined by && and ||; with & behind them they are a subshell.
Decided ShellRunner::list(const Mode& mode) {
  if (mode.skips || !is_background()) return joined_pipelines(mode);
  const Subshell inside(*this);
  joined_pipelines(mode);
  return Decided::yes;
}

Decided ShellRunner::joined_pipelines(const Mode& mode) {
  const std::size_t begin = cursor_.at();
  Decided status = pipeline(mode);
  while (cursor_.peek().is("&&") || cursor_.peek().is("||")) {
    const Decided runs = cursor_.peek().is("&&") ? status : negated(status);
    const int line = cursor_.peek().line;
    cursor_.advance();
    Mode next = under(mode, runs, line, cursor_.shown(begin, cursor_.at()));
    if (jumps_.stops || jumps_.leaves > 0 || jumps_.continues) next = {true, nullptr};
    cursor_.skip_line_ends();
    const Decided after = pipeline(next);
    if (!next.skips && status != Decided::unknown) status = after;
  }
  return status;
}

// All parts of a pipeline are subshells; with `shopt -s lastpipe` all but the last.
Decided ShellRunner::pipeline(const Mode& mode) {
  const bool inverts = take_prefix();
  Decided status = Decided::yes;
  for (bool is_first = true;; is_first = false) {
    const int line = cursor_.peek().line;
    const bool is_piped_on = !mode.skips && is_piped();
    if ((is_piped_on || !is_first) && capture_) capture_->is_known = false;
    Mode each = mode;
    if (!is_first && !is_piped_on && may_keep_last_) each = under(mode, Decided::unknown, line, "lastpipe");
    const Decided before = status;
    if ((is_piped_on || (!is_first && !may_keep_last_)) && !mode.skips) {
      const Subshell inside(*this);
      status = command(each);
    } else {
      status = command(each);
    }
    // With `set -o pipefail` each part counts.
    if (!is_first && before != status) status = Decided::unknown;
    if (!cursor_.take("|")) break;
    cursor_.take("&");
    cursor_.skip_line_ends();
  }
  return inverts ? negated(status) : status;
}

// Passes over "time" and "!" before a pipeline. Whether its status is inverted.
bool ShellRunner::take_prefix() {
  bool inverts = false;
  for (;; cursor_.advance()) {
    const bool is_time = cursor_.peek().is_word("time");
    if (!is_time && !cursor_.peek().is_word("!")) return inverts;
    if (is_time && cursor_.peek(1).is_word("-p")) cursor_.advance();
    if (!is_time) inverts = !inverts;
  }
}

void ShellRunner::pass_command() {
  const bool outer = std::exchange(looks_ahead_, true);
  const int count = count_;
  command({true, nullptr});
  looks_ahead_ = outer;
  count_ = count;
}

// Whether '|' is behind the command that begins here.
bool ShellRunner::is_piped() {
  const std::size_t begin = cursor_.at();
  pass_command();
  const bool found = cursor_.peek().is("|");
  cursor_.go(begin);
  return found;
}

bool ShellRunner::is_background() {
  const std::size_t begin = cursor_.at();
  for (bool goes_on = true; goes_on;) {
    take_prefix();
    pass_command();
    goes_on = false;
    for (const char* joint : {"|", "&&", "||"}) goes_on = goes_on || cursor_.take(joint);
    if (goes_on) cursor_.take("&");
    cursor_.skip_line_ends();
    if (cursor_.ends()) break;
  }
  const bool found = cursor_.peek().is("&");
  cursor_.go(begin);
  return found;
}

Decided ShellRunner::command(const Mode& mode) {
  if (cursor_.ends()) return Decided::yes;
  const ShellToken& first = cursor_.peek();
  ++count_;
  const auto compound = [&]() -> std::optional<Decided> {
    if (first.is("(")) return group(")", mode);
    if (first.is_word("{")) return group("}", mode);
    if (first.is_word("if")) return if_command(mode);
    if (first.is_word("case")) return case_command(mode);
    if (first.is_word("for") || first.is_word("select")) return for_command(mode);
    if (first.is_word("while") || first.is_word("until")) return while_command(mode);
    if (first.is_word("[[")) return double_brackets(mode);
    return std::nullopt;
  };
  if (is_definition()) return definition(mode);
  const std::optional<Decided> status = compound();
  if (!status) return simple(mode);
  for (; !cursor_.ends() && cursor_.peek().is_redirection(); cursor_.advance())
    if (capture_ && cursor_.peek().kind == ShellToken::Kind::output) capture_->is_known = false;
  return *status;
}

Decided ShellRunner::group(const char* close, const Mode& mode) {
  const int line = cursor_.peek().line;
  cursor_.advance();
  const auto inside = [&] {
    const Decided status = block(mode);
    if (cursor_.peek().text != close) cursor_.fail(line, fmt::format("a block is not closed by {}", close));
    cursor_.advance();
    return status;
  };
  if (mode.skips || *close == '}') return inside();
  const Subshell subshell(*this);
  return inside();
}

Decided ShellRunner::if_command(const Mode& mode) {
  const int first = cursor_.peek().line;
  Decided none = Decided::yes;  // of the branches before is taken
  Decided status = Decided::yes;
  std::string condition;
  const auto branch = [&](const Mode& inside, Decided runs) {
    const Decided last = block(inside);
    if (runs != Decided::no) status = runs == Decided::yes ? last : Decided::unknown;
  };
  do {
    const int line = cursor_.peek().line;
    const std::size_t begin = cursor_.at();
    cursor_.advance();
    Decided holds = block(under(mode, none, line, cursor_.shown(begin, begin + 1)));
    condition = cursor_.shown(begin, cursor_.at());
    cursor_.require_word("then", line);
    const Decided runs = both(none, holds);
    if (runs == Decided::yes && !mode.skips) taken_ = condition;
    branch(under(mode, runs, line, condition), runs);
    none = both(none, negated(holds));
    cursor_.skip_blank_lines();
  } while (cursor_.peek().is_word("elif"));
  if (cursor_.take_word("else")) branch(under(mode, none, first, condition + " ... else"), none);
  cursor_.require_word("fi", first);
  return status;
}

Decided ShellRunner::case_command(const Mode& mode) {
  const int line = cursor_.peek().line;
  const std::size_t begin = cursor_.at();
  cursor_.advance();
  const ShellText word = mode.skips ? ShellText() : values_.whole(cursor_.peek().text, line, nullptr);
  cursor_.advance();
  const std::string head = cursor_.shown(begin, cursor_.at());
  cursor_.require_word("in", line);
  Decided none = Decided::yes;  // of the patterns before fits
  Decided falls = Decided::no;  // into the next branch, by ";&"
  Decided status = Decided::yes;
  for (cursor_.skip_blank_lines(); !cursor_.ends() && !cursor_.peek().is_word("esac");
       cursor_.skip_blank_lines()) {
    const std::size_t pattern = cursor_.at();
    const Decided fits = patterns(word, mode);
    const Decided runs = negated(both(negated(falls), negated(both(none, fits))));
    const Decided last =
        block(under(mode, runs, line, fmt::format("{} {}", head, cursor_.shown(pattern, cursor_.at()))));
    if (runs == Decided::yes) status = last;
    if (runs == Decided::unknown) status = Decided::unknown;
    falls = cursor_.take(";&") ? runs : Decided::no;
    // Behind ";;&" the next patterns are tried as well.
    if (falls == Decided::no && !cursor_.take(";;&")) {
      none = both(none, negated(fits));
      if (!cursor_.take(";;") && !cursor_.peek().is_word("esac")) cursor_.advance();
    } else if (falls != Decided::no) {
      none = both(none, negated(fits));
    }
  }
  cursor_.require_word("esac", line);
  return status;
}

// Whether one of the patterns before the bracket fits.
Decided ShellRunner::patterns(const ShellText& word, const Mode& mode) {
  Decided none = Decided::yes;
  for (; !cursor_.ends() && !cursor_.take(")"); cursor_.advance()) {
    if (!cursor_.at_word() || mode.skips) continue;
    for (const std::string& each : shell_patterns(cursor_.peek().text)) {
      const ShellText pattern = values_.pattern(each, cursor_.peek().line, false);
      none = both(none, negated(shell_matches(word, pattern, may_ignore_case_)));
    }
  }
  return negated(none);
}

bool ShellRunner::is_definition() const {
  const std::string& text = cursor_.peek().text;
  if (!cursor_.at_word()) return false;
  if (text == "function") return true;
  if (text.ends_with("()")) return is_shell_name(text.substr(0, text.size() - 2));
  return is_shell_name(text) && cursor_.peek(1).is_word("()");
}

Decided ShellRunner::definition(const Mode& mode) {
  const bool by_keyword = cursor_.take_word("function");
  std::string name = cursor_.peek().text;
  cursor_.advance();
  if (name.ends_with("()")) {
    name.erase(name.size() - 2);
  } else if (!by_keyword || cursor_.peek().is_word("()")) {
    cursor_.advance();
  }
  cursor_.skip_blank_lines();
  const std::size_t begin = cursor_.at();
  command({true, nullptr});
  if (mode.skips) return Decided::yes;
  std::vector<Function>& all = functions_[name];
  if (!mode.branch) all.clear();
  for (Function& each : all)
    if (!each.branch) each.branch = mode.branch;
  auto body = std::make_shared<const std::vector<ShellToken>>(cursor_.slice(begin));
  const auto is_same = [&](const Function& each) {
    return std::ranges::equal(*each.body, *body, {}, &ShellToken::text, &ShellToken::text);
  };
  if (std::ranges::none_of(all, is_same)) all.push_back({std::move(body), mode.branch});
  return Decided::yes;
}

Decided ShellRunner::call_function(const Call& call, const Mode& mode) {
  if (is_at_limit(call.line, shown(call), mode)) return Decided::unknown;
  const std::vector<Function> all = functions_.at(call.name());
  if (all.size() == 1 && !all.front().branch) return call_body(all.front().body, call, mode);
  for (const Function& each : all) {
    const bool is_sure = mode.branch || !each.branch;
    call_body(each.body, call, is_sure ? mode : Mode{false, each.branch});
  }
  return Decided::unknown;
}

Decided ShellRunner::call_body(const ShellTokens& body, const Call& call, const Mode& mode) {
  const Doubts outer = std::exchange(doubts_, {});
  const Decided status = elsewhere(body, [&] {
    values_.push_arguments({call.words.begin() + 1, call.words.end()});
    for (const ShellToken& token : call.assignments) {
      values_.declare(token.text.substr(0, token.text.find_first_of("=+[")), "x", true, nullptr);
      values_.assign(token, mode.branch);
    }
    const Decided last = command(mode);
    values_.pop_arguments();
    return jumps_.returns.value_or(last);
  });
  jumps_.returns.reset();
  jumps_.stops = jumps_.exits;
  const bool is_sure = !doubts_.returns || doubts_.returns == status;
  doubts_ = outer;
  return is_sure ? status : Decided::unknown;
}

ShellRun shell_run(const std::string& text, const std::string& file, const ShellInputs& inputs) {
  return ShellRunner(file, inputs).run(shell_text(text, 1));
}

}  // namespace rehearse
