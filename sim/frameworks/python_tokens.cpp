#include "frameworks/python_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxTokens = 200'000;
constexpr int kTab = 8;  // columns (docs.python.org, lexical analysis, indentation)

bool is_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' ||
         static_cast<unsigned char>(letter) >= 0x80;
}

// "if x: y": the statement behind the colon is a block of one line.
bool has_inline_block(const PythonTokens& tokens) {
  static constexpr std::array kHeads = {"if",  "elif",   "else",    "for", "while", "with",
                                        "try", "except", "finally", "def", "class", "async"};
  if (tokens.empty() || python_head_end(tokens) >= tokens.size()) return false;
  const bool is_case = tokens[0].is_word("case") && tokens[1].kind != PythonToken::Kind::op;
  return is_case || std::ranges::any_of(kHeads, [&](const char* each) { return tokens[0].is_word(each); });
}

class PythonLexer {
 public:
  PythonLexer(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<PythonLine> lines() {
    while (at_ < text_.size()) next();
    if (depth_ > 0) fail(opened_, "a bracket is not closed");
    end_line();
    return std::move(lines_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& rule) const {
    throw InputError({file_, fmt::format("line {}", line), rule, "", ""});
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view word) const {
    return at_ < text_.size() && text_.compare(at_, word.size(), word) == 0;
  }

  void end_line() {
    if (has_inline_block(current_.tokens)) {
      const auto body =
          current_.tokens.begin() + static_cast<std::ptrdiff_t>(python_head_end(current_.tokens));
      PythonLine below = {current_.indent + 1, {body, current_.tokens.end()}};
      current_.tokens.erase(body, current_.tokens.end());
      lines_.push_back(std::move(current_));
      lines_.push_back(std::move(below));
    } else if (!current_.tokens.empty()) {
      lines_.push_back(std::move(current_));
    }
    current_ = {};
    at_begin_ = true;
  }

  // Behind ";": "if x: a = 1; b = 2" has both statements in its block.
  void end_statement() {
    const int indent = current_.indent + (has_inline_block(current_.tokens) ? 1 : 0);
    end_line();
    at_begin_ = false;
    current_.indent = indent;
  }

  void add(PythonToken::Kind kind, std::string word, int line) {
    if (++count_ > kMaxTokens) fail(line, fmt::format("a Python file has at most {} words", kMaxTokens));
    current_.tokens.push_back({kind, std::move(word), line});
  }

  void next() {
    if (at_begin_ && depth_ == 0) indent();
    const char letter = peek();
    if (letter == '\n') {
      ++at_;
      ++line_;
      if (depth_ == 0) end_line();
    } else if (letter == ' ' || letter == '\t' || letter == '\r' || letter == '\f') {
      ++at_;
    } else if (sees("\\\n")) {
      at_ += 2;
      ++line_;
    } else if (letter == ';' && depth_ == 0) {
      ++at_;
      end_statement();
    } else if (letter == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (letter == '"' || letter == '\'') {
      string(false, false);
    } else if (is_letter(letter)) {
      word();
    } else if (letter == '\0' && at_ >= text_.size()) {
      return;
    } else {
      op();
    }
  }

  void indent() {
    at_begin_ = false;
    int columns = 0;
    for (; peek() == ' ' || peek() == '\t'; ++at_) columns += peek() == '\t' ? kTab - columns % kTab : 1;
    current_.indent = columns;
  }

  void word() {
    const std::size_t begin = at_;
    const bool number = std::isdigit(static_cast<unsigned char>(peek())) != 0;
    while (is_letter(peek()) ||
           (number && (peek() == '.' || ((peek() == '-' || peek() == '+') &&
                                         (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))))
      ++at_;
    std::string name = text_.substr(begin, at_ - begin);
    if (!number && name.size() <= 2 && (peek() == '"' || peek() == '\'')) {
      const auto has = [&](const char* letters) { return name.find_first_of(letters) != std::string::npos; };
      if (name.find_first_not_of("rRbBfFuU") == std::string::npos) return string(has("rR"), has("fF"));
    }
    add(number ? PythonToken::Kind::number : PythonToken::Kind::name, std::move(name), line_);
  }

  void string(bool raw, bool computed) {
    const int line = line_;
    const std::string quote(sees("\"\"\"") || sees("'''") ? 3 : 1, peek());
    at_ += quote.size();
    std::string inside;
    while (!sees(quote)) {
      if (at_ >= text_.size() || (quote.size() == 1 && peek() == '\n')) fail(line, "a string is not closed");
      if (peek() == '\\' && !raw) ++at_;
      if (peek() == '\n') ++line_;
      inside += peek();
      ++at_;
    }
    at_ += quote.size();
    add(PythonToken::Kind::text, std::move(inside), line);
    current_.tokens.back().computed = computed;
  }

  void op() {
    static constexpr const char* kLong[] = {"**=", "//=", "<<=", ">>=", "...", "->", ":=", "**",
                                            "//",  "<<",  ">>",  "==",  "!=",  "<=", ">=", "+=",
                                            "-=",  "*=",  "/=",  "%=",  "|=",  "&=", "^=", "@="};
    for (const char* each : kLong)
      if (sees(each)) {
        add(PythonToken::Kind::op, each, line_);
        at_ += std::string_view(each).size();
        return;
      }
    add(PythonToken::Kind::op, std::string(1, peek()), line_);
    const int nesting = current_.tokens.back().nesting();
    if (nesting > 0 && depth_ == 0) opened_ = line_;
    depth_ = std::max(0, depth_ + nesting);
    ++at_;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0, count_ = 0;
  int line_ = 1, depth_ = 0, opened_ = 0;
  bool at_begin_ = true;
  PythonLine current_;
  std::vector<PythonLine> lines_;
};

}  // namespace

int PythonToken::nesting() const {
  if (is("(") || is("[") || is("{")) return 1;
  return is(")") || is("]") || is("}") ? -1 : 0;
}

std::size_t python_outside_brackets(const PythonTokens& tokens, std::size_t begin,
                                    const std::function<bool(const PythonToken&)>& ends) {
  int depth = 0;
  for (std::size_t i = begin; i < tokens.size(); ++i) {
    const int nesting = tokens[i].nesting();
    if (depth == 0 && (nesting < 0 || ends(tokens[i]))) return i;
    depth += nesting;
  }
  return tokens.size();
}

std::size_t python_head_end(const PythonTokens& tokens) {
  const std::size_t colon =
      python_outside_brackets(tokens, 0, [](const PythonToken& each) { return each.is(":"); });
  return std::min(tokens.size(), colon + 1);
}

std::size_t python_opening(const PythonTokens& tokens, std::size_t close) {
  int depth = 0;
  for (std::size_t i = close; i > 0; --i) {
    depth -= tokens[i].nesting();
    if (depth == 0) return i;
  }
  return 0;
}

std::vector<PythonLine> python_lines(const std::string& text, const std::string& file) {
  if (!is_utf8(text)) throw InputError({file, "", "must be text in UTF-8", "", ""});
  return PythonLexer(text, file).lines();
}

}  // namespace rehearse
