#include "frameworks/shell_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/error.h"

namespace rehearse {

namespace {

bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r';
}

bool opens_a_command(const std::string& word) {
  static constexpr std::array kWords = {"if", "then", "elif", "else", "while", "until",
                                        "do", "!",    "{",    "in",   "time"};
  return std::ranges::find(kWords, word) != kWords.end();
}

class ShellLexer {
 public:
  ShellLexer(const ShellText& script, const std::string& file) : script_(script), file_(file) {
    for (const ShellPiece& piece : script) {
      begins_.push_back(text_.size());
      text_ += piece.text;
    }
  }

  std::vector<ShellToken> tokens() {
    while (at_ < text_.size()) next();
    read_bodies();
    return std::move(tokens_);
  }

 private:
  struct Awaited {  // a here-document whose body follows the line
    std::size_t token;
    std::string end;
    bool tabs;
  };

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool sees(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }

  const ShellPiece& piece_at(std::size_t offset) const {
    const auto after = std::ranges::upper_bound(begins_, offset);
    return script_[static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, after - begins_.begin()) - 1)];
  }

  void add(ShellToken::Kind kind, std::string text, std::size_t begin) {
    const ShellPiece& piece = piece_at(begin);
    tokens_.push_back({kind, std::move(text), piece.line, piece.branch});
  }

  [[noreturn]] void fail(std::size_t begin, const std::string& rule) const {
    throw InputError({file_, fmt::format("line {}", piece_at(begin).line), rule, "", ""});
  }

  bool at_command() const {
    if (tokens_.empty()) return true;
    const ShellToken& last = tokens_.back();
    return last.kind == ShellToken::Kind::op || opens_a_command(last.text);
  }

  void op(std::size_t size) {
    written_to_.clear();
    document_ = kNone;
    add(ShellToken::Kind::op, text_.substr(at_, size), at_);
    at_ += size;
  }

  void next() {
    if (is_space(peek())) {
      ++at_;
    } else if (sees("\\\n")) {
      at_ += 2;
    } else if (peek() == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (peek() == '\n') {
      op(1);
      read_bodies();
    } else if (sees(";;&")) {
      op(3);
    } else if (sees(";;") || sees(";&") || sees("&&") || sees("||")) {
      op(2);
    } else if (sees("&>")) {
      ++at_;
      redirection();
    } else if (peek() == ';' || peek() == '&' || peek() == '|' || peek() == ')') {
      op(1);
    } else if ((peek() == '<' || peek() == '>') && peek(1) != '(') {
      compares_ ? compare() : redirection();
    } else if (peek() == '(' && (compares_ ? tokens_.back().text != "=~" : peek(1) != '(' && at_command())) {
      op(1);
    } else {
      word();
    }
  }

  // [[ a < b ]]
  void compare() {
    add(ShellToken::Kind::word, std::string(1, peek()), at_);
    ++at_;
  }

  // Leaves `2>&1` out. No file is called --option: there the bracket closes a
  // placeholder, as in "--data-path <PATH> --fp16".
  void redirection() {
    const bool text = sees("<<<"), here = sees("<<") && !text, writes = peek() == '>' && !sees(">&");
    const bool reads = peek() == '<' && !sees("<&") && !sees("<>");
    const bool shows = peek() == '>' && (descriptor_.empty() || descriptor_ == "1");
    descriptor_.clear();
    while (peek() == '<' || peek() == '>' || peek() == '&') ++at_;
    const bool tabs = here && peek() == '-';
    if (tabs) ++at_;
    while (is_space(peek())) ++at_;
    const std::size_t begin = at_;
    if (!here && sees("--")) return;
    std::string target = scan_word();
    if (writes) write_to(target);
    if (!here && reads) add(text ? ShellToken::Kind::here_string : ShellToken::Kind::input, target, begin);
    if (shows) add(ShellToken::Kind::output, target, begin);
    if (!here) return;
    const bool literal = target.find_first_of("\"'\\") != std::string::npos;
    std::erase_if(target, [](char letter) { return letter == '"' || letter == '\'' || letter == '\\'; });
    add(ShellToken::Kind::here_document, "", begin);
    tokens_.back().literal = literal;
    tokens_.back().written_to = written_to_;
    document_ = tokens_.size() - 1;
    awaited_.push_back({document_, target, tabs});
  }

  // `cat > FILE <<END` and `cat <<END > FILE`.
  void write_to(const std::string& target) {
    written_to_ = target;
    if (document_ != kNone) tokens_[document_].written_to = target;
  }

  void read_bodies() {
    for (const Awaited& document : awaited_) {
      std::string body;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        if (document.tabs) line.erase(0, std::min(line.find_first_not_of('\t'), line.size()));
        if (line == document.end) break;
        body += line + "\n";
      }
      tokens_[document.token].text = std::move(body);
    }
    awaited_.clear();
  }

  void word() {
    const std::size_t begin = at_;
    std::string text = scan_word();
    const bool descriptor = (peek() == '<' || peek() == '>') && std::ranges::all_of(text, [](char letter) {
                              return std::isdigit(static_cast<unsigned char>(letter)) != 0;
                            });
    descriptor_ = descriptor ? text : "";
    if (descriptor) return;
    if (text == "[[" && at_command()) compares_ = true;
    if (text == "]]") compares_ = false;
    add(ShellToken::Kind::word, std::move(text), begin);
  }

  // A '|' between letters is taken for one of a layout of layers, which a file of arguments need not quote.
  bool ends_word() const {
    const char letter = peek();
    if (letter == '|') return sees("||") || is_space(peek(1)) || peek(1) == '\n' || peek(1) == '\0';
    return is_space(letter) || letter == '\n' || letter == ';' || letter == '&' || letter == ')' ||
           ((letter == '<' || letter == '>') && peek(1) != '(');
  }

  std::string scan_word() {
    std::string text;
    while (at_ < text_.size() && !ends_word()) {
      if (sees("\\\n")) {
        at_ += 2;
      } else {
        const std::size_t begin = at_;
        skip_unit();
        text += text_.substr(begin, at_ - begin);
      }
    }
    return text;
  }

  // Skips one letter, or a text in quotes or brackets.
  void skip_unit() {
    const std::size_t begin = at_;
    if (peek() == '\\') {
      at_ = std::min(at_ + 2, text_.size());
    } else if (sees("$'")) {
      for (at_ += 2; at_ < text_.size() && peek() != '\''; ++at_)
        if (peek() == '\\') ++at_;
      if (at_ >= text_.size()) fail(begin, "a quote is not closed");
      ++at_;
    } else if (peek() == '\'') {
      const std::size_t end = text_.find('\'', at_ + 1);
      if (end == std::string::npos) fail(begin, "a quote is not closed");
      at_ = end + 1;
    } else if (peek() == '"') {
      skip_double_quotes();
    } else if (peek() == '`') {
      const std::size_t end = text_.find('`', at_ + 1);
      if (end == std::string::npos) fail(begin, "a quote ` is not closed");
      at_ = end + 1;
    } else if (peek() == '(' || sees("$(")) {
      skip_brackets('(', ')');
    } else if (sees("${")) {
      skip_brackets('{', '}');
    } else {
      ++at_;
    }
  }

  void skip_double_quotes() {
    const std::size_t begin = at_++;
    while (peek() != '"') {
      if (at_ >= text_.size()) fail(begin, "a quote is not closed");
      if (peek() == '\'' || peek() == '(' || sees("$'"))
        ++at_;
      else if (sees("${") && is_default())
        skip_default();
      else
        skip_unit();
    }
    ++at_;
  }

  // "${NAME:-word}": in double quotes a single quote in the word stands for itself.
  bool is_default() const {
    std::size_t end = at_ + 2;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
      ++end;
    if (end < text_.size() && text_[end] == ':') ++end;
    return end < text_.size() && std::string_view("-=+?").find(text_[end]) != std::string_view::npos;
  }

  void skip_default() {
    const std::size_t begin = at_;
    if (++depth_ > kDeepest) fail(begin, fmt::format("brackets nest deeper than {}", kDeepest));
    for (at_ += 2; peek() != '}';) {
      if (at_ >= text_.size()) fail(begin, "a bracket { is not closed");
      if (peek() == '\'' || peek() == '(')
        ++at_;
      else
        skip_unit();
    }
    ++at_;
    --depth_;
  }

  void skip_brackets(char open, char close) {
    const std::size_t begin = at_;
    if (++depth_ > kDeepest) fail(begin, fmt::format("brackets nest deeper than {}", kDeepest));
    if (peek() == '$') ++at_;
    ++at_;
    bool at_word = open == '(';  // where a comment may begin
    while (peek() != close) {
      if (at_ >= text_.size()) fail(begin, fmt::format("a bracket {} is not closed", open));
      if (at_word && peek() == '#') {
        while (at_ < text_.size() && peek() != '\n') ++at_;
        continue;
      }
      at_word = open == '(' && (is_space(peek()) || peek() == '\n');
      skip_unit();
    }
    ++at_;
    --depth_;
  }

  static constexpr int kDeepest = 64;
  static constexpr std::size_t kNone = std::string::npos;
  const ShellText& script_;
  const std::string& file_;
  std::string text_;
  std::vector<std::size_t> begins_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<ShellToken> tokens_;
  std::vector<Awaited> awaited_;
  std::string written_to_;        // of the command that is read
  std::size_t document_ = kNone;  // its here-document
  bool compares_ = false;         // between [[ and ]]
  std::string descriptor_;        // "2" of 2>file
};

}  // namespace

void append(ShellText& text, const std::string& more, int line, const BranchPointer& branch, ShellOpen open) {
  if (more.empty()) return;
  if (text.empty() || text.back().line != line || text.back().branch != branch || text.back().open != open)
    text.push_back({"", line, branch, open});
  text.back().text += more;
}

void append(ShellText& text, const ShellText& more) {
  for (const ShellPiece& piece : more)
    if (!piece.has_letters())
      text.push_back(piece);
    else
      append(text, piece.text, piece.line, piece.branch, piece.open);
}

ShellText joined(const std::vector<ShellText>& words, const BranchPointer& branch) {
  ShellText all;
  for (const ShellText& word : words) {
    if (!all.empty()) append(all, " ", all.back().line, all.back().branch);
    for (ShellPiece piece : word) {
      if (!piece.branch) piece.branch = branch;
      append(all, {piece});
    }
  }
  return all;
}

std::string flat(const ShellText& text) {
  std::string all;
  for (const ShellPiece& piece : text) all += piece.text;
  return all;
}

BranchPointer branch_of(const ShellText& text) {
  for (const ShellPiece& piece : text)
    if (piece.branch) return piece.branch;
  return nullptr;
}

bool is_decided(const ShellText& text) {
  return std::ranges::none_of(text, [](const ShellPiece& piece) {
    return piece.branch || piece.open != ShellOpen::no || piece.text.find('$') != std::string::npos;
  });
}

bool is_many(const ShellText& element) {
  return std::ranges::any_of(element, [](const ShellPiece& piece) {
    return piece.open == ShellOpen::words || piece.open == ShellOpen::maybe;
  });
}

ShellText shell_text(const std::string& text, int first_line) {
  ShellText lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string line = text.substr(at, end - at);
    if (line.ends_with("\r\n")) line.replace(line.size() - 2, 2, "\n");
    lines.push_back({std::move(line), first_line++, nullptr});
    at = end;
  }
  return lines;
}

std::vector<ShellToken> shell_tokens(const ShellText& script, const std::string& file) {
  if (script.empty()) return {};
  return ShellLexer(script, file).tokens();
}

}  // namespace rehearse
