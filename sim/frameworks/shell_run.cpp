#include "frameworks/shell_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "frameworks/shell_condition.h"
#include "frameworks/shell_cursor.h"

namespace rehearse {

namespace {

constexpr int kMostCommands = 20'000;  // of a script with its functions called
constexpr int kDeepestShell = 24;      // blocks, functions and scripts inside each other

template <typename List>
bool is_among(const List& list, const std::string& word) {
  return std::ranges::find(list, word) != std::end(list);
}

// Taken to succeed: what stands behind && of them runs.
constexpr std::array kSucceed = {"cd",   "pushd", "popd", "mkdir",  "export", "source", ".",    "set",
                                 "echo", "rm",    "cp",   "mv",     "touch",  "chmod",  "pip",  "pip3",
                                 "git",  "sleep", "wait", "module", "conda",  "ulimit", "shopt"};
constexpr std::array kAssign = {"export", "declare", "local", "readonly", "typeset"};
constexpr std::array kShells = {"bash", "sh", "/bin/bash", "/bin/sh", "sbatch"};
constexpr std::array kEndOfBlock = {"then", "elif", "else", "fi", "do", "done", "esac", "}"};

class ShellRunner {
 public:
  explicit ShellRunner(const std::string& file)
      : file_(file), values_(file), cursor_(file, std::make_shared<std::vector<ShellToken>>()) {}

  ShellRun run(const ShellText& text) {
    script(text, {});
    return {std::move(commands_), values_.all()};
  }

 private:
  // Whether commands are passed over, run, or run where a branch is taken.
  struct Mode {
    bool skips = false;
    BranchPointer branch;
  };

  static Mode under(const Mode& mode, Decided decided, int line, const std::string& condition) {
    if (mode.skips || decided == Decided::no) return {true, nullptr};
    if (decided == Decided::yes || mode.branch) return mode;  // the outer one is named
    return {false, std::make_shared<const ShellBranch>(ShellBranch{line, condition})};
  }

  // Reads other words and comes back.
  template <typename Read>
  Decided elsewhere(ShellTokens tokens, const Read& read) {
    deeper();
    ShellCursor back = std::exchange(cursor_, ShellCursor(file_, std::move(tokens)));
    const Decided status = read();
    cursor_ = std::move(back);
    --depth_;
    return status;
  }

  void deeper() {
    if (++depth_ > kDeepestShell) cursor_.fail(std::max(1, cursor_.peek().line), "blocks nest too deep");
  }

  Decided script(const ShellText& text, const Mode& mode) {
    auto tokens = std::make_shared<const std::vector<ShellToken>>(shell_tokens(text, file_));
    return elsewhere(std::move(tokens), [&] {
      while (!cursor_.ends()) {
        block(mode);
        if (!cursor_.ends()) cursor_.advance();  // a keyword or bracket that closes nothing
      }
      return Decided::unknown;
    });
  }

  // Up to a keyword or bracket that ends it.
  Decided block(Mode mode) {
    deeper();
    Decided status = Decided::yes;
    for (cursor_.skip_blank_lines(); !cursor_.ends(); cursor_.skip_blank_lines()) {
      const ShellToken& next = cursor_.peek();
      if (next.is(")") || next.is(";;") || (cursor_.at_word() && is_among(kEndOfBlock, next.text))) break;
      if (stopped_) mode.skips = true;
      const std::size_t before = cursor_.at();
      status = list(mode);
      if (cursor_.at() == before) cursor_.advance();
    }
    --depth_;
    return status;
  }

  // Commands joined by && and ||.
  Decided list(const Mode& mode) {
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

  Decided pipeline(const Mode& mode) {
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

  Decided command(const Mode& mode) {
    if (cursor_.ends()) return Decided::yes;
    const ShellToken& first = cursor_.peek();
    if (++count_ > kMostCommands)
      cursor_.fail(first.line, fmt::format("a script runs at most {} commands", kMostCommands));
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

  Decided group(const char* close, const Mode& mode) {
    const int line = cursor_.peek().line;
    cursor_.advance();
    const Decided status = block(mode);
    if (cursor_.peek().text != close) cursor_.fail(line, fmt::format("a block is not closed by {}", close));
    cursor_.advance();
    return status;
  }

  Decided if_command(const Mode& mode) {
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
      block(under(mode, both(none, holds), line, condition));
      none = both(none, negated(holds));
      cursor_.skip_blank_lines();
    } while (cursor_.peek().is_word("elif"));
    if (cursor_.take_word("else")) block(under(mode, none, first, condition + " ... else"));
    cursor_.require_word("fi", first);
    return Decided::unknown;
  }

  Decided case_command(const Mode& mode) {
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

  // Whether one of those before the bracket fits.
  Decided patterns(const ShellText& word, const Mode& mode) {
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

  // A loop over one word runs once; of another the body runs for words that differ.
  Decided for_command(const Mode& mode) {
    const int line = cursor_.peek().line;
    const std::size_t begin = cursor_.at();
    cursor_.advance();
    const std::string name = cursor_.peek().text;
    cursor_.advance();
    std::vector<ShellText> over;
    if (cursor_.take_word("in"))
      for (; cursor_.at_word(); cursor_.advance())
        if (!mode.skips)
          for (ShellText& word : values_.words(cursor_.peek(), nullptr)) over.push_back(std::move(word));
    const bool is_one = over.size() == 1 && flat(over[0]).find('$') == std::string::npos;
    const std::string condition = cursor_.shown(begin, cursor_.at());
    const Mode inside = under(mode, is_one ? Decided::yes : Decided::unknown, line, condition);
    if (!inside.skips && is_shell_name(name)) values_.set(name, {joined(over, inside.branch)}, inside.branch);
    return loop_body(inside, line);
  }

  // Only `while true` is known to run and to come to its end in the same way each time.
  Decided while_command(const Mode& mode) {
    const int line = cursor_.peek().line;
    const bool until = cursor_.peek().is_word("until");
    const std::size_t begin = cursor_.at();
    const bool always = !until && (cursor_.peek(1).is_word("true") || cursor_.peek(1).is_word(":"));
    cursor_.advance();
    const Decided holds = block(mode);
    const bool never = holds == (until ? Decided::yes : Decided::no);
    const Decided runs = never ? Decided::no : always ? Decided::yes : Decided::unknown;
    return loop_body(under(mode, runs, line, cursor_.shown(begin, cursor_.at())), line);
  }

  Decided loop_body(const Mode& mode, int line) {
    cursor_.require_word("do", line);
    block(mode);
    cursor_.require_word("done", line);
    return Decided::unknown;
  }

  Decided double_brackets(const Mode& mode) {
    std::vector<ShellText> words;
    const int line = cursor_.peek().line;
    for (cursor_.advance(); !cursor_.peek().is_word("]]"); cursor_.advance()) {
      if (cursor_.ends()) cursor_.fail(line, "\"[[\" is not closed by \"]]\"");
      const ShellToken& next = cursor_.peek();
      if (mode.skips || next.is("\n")) continue;
      words.push_back(cursor_.at_word() ? values_.whole(next.text, line, nullptr)
                                        : ShellText{{next.text, line, nullptr}});
    }
    cursor_.advance();
    return mode.skips ? Decided::no : shell_condition(words, true);
  }

  bool is_definition() const {
    const std::string& text = cursor_.peek().text;
    if (!cursor_.at_word()) return false;
    if (text == "function") return true;
    if (text.ends_with("()")) return is_shell_name(text.substr(0, text.size() - 2));
    return is_shell_name(text) && cursor_.peek(1).is_word("()");
  }

  Decided definition(const Mode& mode) {
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

  Decided call(const std::string& name, const std::vector<ShellText>& arguments, const Mode& mode) {
    const Decided status = elsewhere(functions_.at(name), [&] {
      values_.set_arguments(arguments);
      const Decided last = command(mode);
      values_.forget_arguments();
      return last;
    });
    stopped_ = exited_;
    return status;
  }

  Decided simple(const Mode& mode) {
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
        continue;
      } else if (words.empty() && is_shell_assignment(token.text)) {
        assignments.push_back(token);
      } else if (is_among(kAssign, name) && is_shell_assignment(token.text)) {
        values_.assign(token, mode.branch);
      } else if (name == "[" || name == "test") {
        words.push_back(values_.whole(token.text, token.line, nullptr));  // an empty word stays one
      } else {
        for (ShellText& word : values_.words(token, mode.branch)) words.push_back(std::move(word));
      }
    }
    if (mode.skips) return Decided::no;
    if (!words.empty()) return run_words(words, document, line, mode);
    for (const ShellToken& token : assignments) values_.assign(token, mode.branch);
    return Decided::yes;
  }

  Decided run_words(const std::vector<ShellText>& words, const ShellToken* document, int line,
                    const Mode& mode) {
    const std::string name = flat(words.front());
    if (name == "true" || name == ":") return Decided::yes;
    if (name == "false") return Decided::no;
    if (name == "[" || name == "test") return test(words, name == "[");
    if (name.starts_with("((")) return sum(name);
    if (functions_.contains(name)) return call(name, {words.begin() + 1, words.end()}, mode);
    if (name == "exit" || name == "return") return stop(name == "exit", mode);
    if (name == "unset" && words.size() > 1) values_.unset(flat(words[1]));
    if (name == "eval") return nested(joined({words.begin() + 1, words.end()}, nullptr), mode);
    if (name == "read" && document) values_.set(flat(words.back()), {body_of(*document)}, mode.branch);
    if (document && is_among(kShells, name)) return nested(body_of(*document), mode);
    for (std::size_t i = 1; i + 1 < words.size(); ++i)
      if ((flat(words[i]) == "-c" || flat(words[i]) == "-lc") && is_among(kShells, flat(words[i - 1])))
        return nested(words[i + 1], mode);
    keep(words, line, mode);
    return is_among(kSucceed, name) || is_among(kAssign, name) ? Decided::yes : Decided::unknown;
  }

  static Decided test(const std::vector<ShellText>& words, bool brackets) {
    const std::ptrdiff_t last = brackets && words.size() > 1 && flat(words.back()) == "]" ? 1 : 0;
    return shell_condition({words.begin() + 1, words.end() - last}, false);
  }

  Decided sum(const std::string& text) {
    if (text.size() < 4) return Decided::unknown;
    const auto value = values_.arithmetic(text.substr(2, text.size() - 4));
    return !value ? Decided::unknown : *value != 0 ? Decided::yes : Decided::no;
  }

  // The rest of a script whose end is not decided is taken to run.
  Decided stop(bool exits, const Mode& mode) {
    if (mode.branch) return Decided::yes;
    stopped_ = true;
    exited_ = exited_ || exits;
    return Decided::yes;
  }

  ShellText body_of(const ShellToken& document) {
    const int line = document.line + 1;
    if (document.literal) return shell_text(document.text, line);
    return values_.whole("\"" + document.text + "\"", line, document.branch);
  }

  Decided nested(const ShellText& text, const Mode& mode) {
    const bool stopped = stopped_, exited = exited_;
    script(text, mode);
    stopped_ = stopped;
    exited_ = exited;
    return Decided::unknown;
  }

  void keep(const std::vector<ShellText>& words, int line, const Mode& mode) {
    ShellCommand command{{}, line, mode.branch};
    for (const ShellText& word : words)
      command.words.push_back({flat(word), word.empty() ? line : word.front().line, branch_of(word)});
    commands_.push_back(std::move(command));
  }

  std::string file_;
  ShellValues values_;
  ShellCursor cursor_;
  std::map<std::string, ShellTokens> functions_;
  int depth_ = 0, count_ = 0;
  bool stopped_ = false, exited_ = false;
  std::vector<ShellCommand> commands_;
};

}  // namespace

ShellRun shell_run(const std::string& text, const std::string& file) {
  return ShellRunner(file).run(shell_text(text, 1));
}

}  // namespace rehearse
