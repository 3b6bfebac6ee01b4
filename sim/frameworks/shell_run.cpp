#include "frameworks/shell_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_runner.h"

namespace rehearse {

namespace {

constexpr int kMaxCommands = 20'000;  // of a script with its functions called
constexpr int kMaxTurns = 200;        // of a loop
constexpr std::size_t kMaxWordsOfLoop = 64;
constexpr int kDeepestShell = 24;  // blocks, functions and scripts inside each other
constexpr std::array kEndOfBlock = {"then", "elif", "else", "fi", "do", "done", "esac", "}"};

bool ends_block(const std::string& word) {
  return std::ranges::find(kEndOfBlock, word) != kEndOfBlock.end();
}

}  // namespace

ShellRunner::ShellRunner(const std::string& file, const ShellInputs& inputs)
    : file_(file),
      inputs_(inputs),
      values_(file, inputs),
      cursor_(file, std::make_shared<std::vector<ShellToken>>()) {}

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
  if (++depth_ > kDeepestShell) cursor_.fail(std::max(1, cursor_.peek().line), "blocks nest too deep");
}

Decided ShellRunner::script(const ShellText& text, const Mode& mode) {
  values_.spend(flat(text).size(), text.empty() ? 0 : text.front().line);
  auto tokens = std::make_shared<const std::vector<ShellToken>>(shell_tokens(text, file_));
  return elsewhere(std::move(tokens), [&] {
    while (!cursor_.ends()) {
      block(mode);
      if (!cursor_.ends()) cursor_.advance();  // a keyword or bracket that closes nothing
    }
    return Decided::unknown;
  });
}

// Runs commands up to the keyword or bracket that ends the block.
Decided ShellRunner::block(Mode mode) {
  deeper();
  Decided status = Decided::yes;
  for (cursor_.skip_blank_lines(); !cursor_.ends(); cursor_.skip_blank_lines()) {
    const ShellToken& next = cursor_.peek();
    if (next.is(")") || next.is(";;") || (cursor_.at_word() && ends_block(next.text))) break;
    if (stopped_ || broke_) mode.skips = true;
    const std::size_t before = cursor_.at();
    status = list(mode);
    if (cursor_.at() == before) cursor_.advance();
  }
  --depth_;
  return status;
}

// Commands joined by && and ||.
Decided ShellRunner::list(const Mode& mode) {
  const std::size_t begin = cursor_.at();
  Decided status = pipeline(mode);
  while (cursor_.peek().is("&&") || cursor_.peek().is("||")) {
    const Decided runs = cursor_.peek().is("&&") ? status : negated(status);
    const int line = cursor_.peek().line;
    cursor_.advance();
    const Mode next = under(mode, runs, line, cursor_.shown(begin, cursor_.at()));
    cursor_.skip_line_ends();
    const Decided after = pipeline(next);
    if (!next.skips && status != Decided::unknown) status = after;
  }
  return status;
}

Decided ShellRunner::pipeline(const Mode& mode) {
  const bool inverts = cursor_.peek().is_word("!");
  if (inverts) cursor_.advance();
  Decided status = command(mode);
  while (cursor_.take("|")) {
    cursor_.take("&");
    cursor_.skip_line_ends();
    status = command(mode);
  }
  return inverts ? negated(status) : status;
}

Decided ShellRunner::command(const Mode& mode) {
  if (cursor_.ends()) return Decided::yes;
  const ShellToken& first = cursor_.peek();
  if (++count_ > kMaxCommands)
    cursor_.fail(first.line, fmt::format("a script runs at most {} commands", kMaxCommands));
  if (first.is("(")) return group(")", mode);
  if (first.is_word("{")) return group("}", mode);
  if (first.is_word("if")) return if_command(mode);
  if (first.is_word("case")) return case_command(mode);
  if (first.is_word("for") || first.is_word("select")) return for_command(mode);
  if (first.is_word("while") || first.is_word("until")) return while_command(mode);
  if (first.is_word("[[")) return double_brackets(mode);
  if (is_definition()) return definition(mode);
  return simple(mode);
}

Decided ShellRunner::group(const char* close, const Mode& mode) {
  const int line = cursor_.peek().line;
  cursor_.advance();
  const Decided status = block(mode);
  if (cursor_.peek().text != close) cursor_.fail(line, fmt::format("a block is not closed by {}", close));
  cursor_.advance();
  return status;
}

Decided ShellRunner::if_command(const Mode& mode) {
  const int first = cursor_.peek().line;
  Decided none = Decided::yes;  // of the branches before is taken
  std::string condition;
  do {
    const int line = cursor_.peek().line;
    const std::size_t begin = cursor_.at();
    cursor_.advance();
    const Decided holds = block(under(mode, none, line, cursor_.shown(begin, begin + 1)));
    condition = cursor_.shown(begin, cursor_.at());
    cursor_.require_word("then", line);
    if (both(none, holds) == Decided::yes && !mode.skips) taken_ = condition;
    block(under(mode, both(none, holds), line, condition));
    none = both(none, negated(holds));
    cursor_.skip_blank_lines();
  } while (cursor_.peek().is_word("elif"));
  if (cursor_.take_word("else")) block(under(mode, none, first, condition + " ... else"));
  cursor_.require_word("fi", first);
  return Decided::unknown;
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
  for (cursor_.skip_blank_lines(); !cursor_.ends() && !cursor_.peek().is_word("esac");
       cursor_.skip_blank_lines()) {
    const std::size_t pattern = cursor_.at();
    const Decided fits = patterns(word, mode);
    block(under(mode, both(none, fits), line,
                fmt::format("{} {}", head, cursor_.shown(pattern, cursor_.at()))));
    none = both(none, negated(fits));
    if (!cursor_.take(";;") && !cursor_.peek().is_word("esac")) cursor_.advance();
  }
  cursor_.require_word("esac", line);
  return Decided::unknown;
}

// Whether one of the patterns before the bracket fits.
Decided ShellRunner::patterns(const ShellText& word, const Mode& mode) {
  Decided none = Decided::yes;
  for (; !cursor_.ends() && !cursor_.take(")"); cursor_.advance()) {
    if (!cursor_.at_word() || mode.skips) continue;
    std::string text = cursor_.peek().text;
    for (std::size_t bar = 0; bar != std::string::npos;) {
      bar = text.find('|');
      const ShellText pattern = values_.whole(text.substr(0, bar), cursor_.peek().line, nullptr);
      none = both(none, negated(shell_matches(word, pattern)));
      text.erase(0, bar == std::string::npos ? text.size() : bar + 1);
    }
  }
  return negated(none);
}

// A loop over known words runs for each of them. Over arguments that nobody hands in it does not run. Over
// other words its body runs undecided.
Decided ShellRunner::for_command(const Mode& mode) {
  const int line = cursor_.peek().line;
  const std::size_t begin = cursor_.at();
  cursor_.advance();
  const std::string name = cursor_.peek().text;
  cursor_.advance();
  std::vector<ShellText> over;
  const bool of_words = cursor_.take_word("in");
  const bool counts = name.starts_with("((");
  if (!of_words && !counts && !mode.skips)
    over = values_.words({ShellToken::Kind::word, "\"$@\"", line, nullptr}, nullptr);
  if (of_words)
    for (; cursor_.at_word(); cursor_.advance())
      if (!mode.skips)
        for (ShellText& word : values_.words(cursor_.peek(), nullptr)) over.push_back(std::move(word));
  const bool is_known =
      !counts && over.size() <= kMaxWordsOfLoop && std::ranges::none_of(over, [](const ShellText& word) {
        return branch_of(word) || flat(word).find('$') != std::string::npos;
      });
  const std::string condition = cursor_.shown(begin, cursor_.at());
  const Mode inside = under(mode, is_known ? Decided::yes : Decided::unknown, line, condition);
  if (inside.skips || !is_known) {
    if (!inside.skips && is_shell_name(name)) values_.set(name, {joined(over, inside.branch)}, inside.branch);
    return loop_body(inside, line);
  }
  if (over.empty()) return loop_body({true, nullptr}, line);
  const std::size_t body = cursor_.at();
  for (const ShellText& word : over) {
    cursor_.go(body);
    if (is_shell_name(name)) values_.set(name, {word}, inside.branch);
    loop_body(broke_ ? Mode{true, nullptr} : inside, line);
  }
  broke_ = false;
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
  for (int turn = 0;; ++turn) {
    cursor_.go(condition);
    Decided holds = block(mode);
    const std::string shown = cursor_.shown(begin, cursor_.at());
    const bool reads_arguments = shown.find("$#") != std::string::npos ||
                                 shown.find("getopt") != std::string::npos ||
                                 shown.find("\"$1\"") != std::string::npos;
    if (until) holds = negated(holds);
    if (holds == Decided::unknown && reads_arguments && inputs_.arguments.empty()) holds = Decided::no;
    const bool ends = broke_ || stopped_ || turn >= kMaxTurns;
    if (ends || holds != Decided::yes) {
      const Decided last = ends ? Decided::no : holds;
      broke_ = false;
      return loop_body(under(mode, last, line, shown), line);
    }
    loop_body(mode, line);
    if (mode.skips || mode.branch) return Decided::unknown;
  }
}

Decided ShellRunner::loop_body(const Mode& mode, int line) {
  cursor_.require_word("do", line);
  block(mode);
  cursor_.require_word("done", line);
  return Decided::unknown;
}

Decided ShellRunner::double_brackets(const Mode& mode) {
  std::vector<ShellText> words;
  const int line = cursor_.peek().line;
  for (cursor_.advance(); !cursor_.peek().is_word("]]"); cursor_.advance()) {
    if (cursor_.ends()) cursor_.fail(line, "\"[[\" is not closed by \"]]\"");
    const ShellToken& next = cursor_.peek();
    if (mode.skips || next.is("\n")) continue;
    words.push_back(cursor_.at_word() ? operand(next) : ShellText{{next.text, line, nullptr}});
  }
  cursor_.advance();
  if (mode.skips) return Decided::no;
  count_unset(words, line);
  return shell_condition(words, true, [this](const std::string& name) { return is_set(name); });
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
  if (!mode.skips) functions_[name] = std::make_shared<const std::vector<ShellToken>>(cursor_.slice(begin));
  return Decided::yes;
}

Decided ShellRunner::call(const std::string& name, const std::vector<ShellText>& arguments,
                          const Mode& mode) {
  const Decided status = elsewhere(functions_.at(name), [&] {
    values_.push_arguments(arguments);
    const Decided last = command(mode);
    values_.pop_arguments();
    return last;
  });
  stopped_ = exited_;
  return status;
}

ShellRun shell_run(const std::string& text, const std::string& file, const ShellInputs& inputs) {
  return ShellRunner(file, inputs).run(shell_text(text, 1));
}

}  // namespace rehearse
