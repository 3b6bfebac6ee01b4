#include "frameworks/shell_expansion.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr int kDeepestOutput = 32;  // $(... $(...))

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n';
}

}  // namespace

std::size_t end_of_name(const std::string& text, std::size_t begin) {
  if (begin < text.size() &&
      std::string_view("@*#?!$-0123456789").find(text[begin]) != std::string_view::npos)
    return begin + 1;
  std::size_t end = begin;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
    ++end;
  return end;
}

std::size_t end_of_brackets(const std::string& text, std::size_t begin, char open, char close) {
  int depth = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '\'' && open == '(') {
      at = std::min(text.find('\'', at + 1), text.size());
    } else if (text[at] == open) {
      ++depth;
    } else if (text[at] == close && --depth == 0) {
      return at;
    }
  }
  return text.size();
}

std::vector<ShellText> ShellValues::Expansion::run() {
  while (at_ < raw_.size()) unit();
  if (open_ && !(vanished_ && flat(word_).empty())) words_.push_back(std::move(word_));
  return std::move(words_);
}

void ShellValues::Expansion::put(const std::string& text, int line, const BranchPointer& branch,
                                 bool is_literal) {
  if (pattern_ == ShellPattern::none || !is_literal) return append(word_, text, line, branch);
  const std::string_view special = pattern_ == ShellPattern::glob ? "*?[]\\/()|@!+-^" : ".[]{}()*+?^$|\\";
  std::string escaped;
  for (const char one : text) {
    if (special.find(one) != std::string_view::npos) escaped += '\\';
    escaped += one;
  }
  append(word_, escaped, line, branch);
}

void ShellValues::Expansion::letter(char one, bool is_literal) {
  open_ = true;
  put(std::string(1, one), line_, branch_, is_literal);
  if (one == '\n') ++line_;
}

void ShellValues::Expansion::unit() {
  const char one = raw_[at_];
  if (one == '\\' && at_ + 1 < raw_.size() && quote_ != '\'') return escaped();
  if (quote_ == '\0' && raw_.compare(at_, 2, "$'") == 0) return ansi_quoted();
  if (one == quote_) {
    quote_ = '\0';
    open_ = true;
  } else if (quote_ == '\0' && (one == '"' || one == '\'')) {
    quote_ = one;
    open_ = true;
  } else if (quote_ != '\'' && (one == '$' || one == '`')) {
    return dollar();
  } else {
    letter(one, quote_ != '\0');
  }
  ++at_;
}

void ShellValues::Expansion::escaped() {
  const char next = raw_[at_ + 1];
  at_ += 2;
  if (next == '\n') return void(++line_);
  const bool kept = quote_ == '"' && std::string_view("$`\"\\").find(next) == std::string_view::npos;
  const bool of_regex = pattern_ == ShellPattern::regex && quote_ == '\0' &&
                        std::isalnum(static_cast<unsigned char>(next)) != 0;
  if (kept || of_regex) letter('\\', kept);
  letter(next, !of_regex);
}

// $'a\tb'
void ShellValues::Expansion::ansi_quoted() {
  open_ = true;
  for (at_ += 2; at_ < raw_.size() && raw_[at_] != '\''; ++at_) {
    if (raw_[at_] != '\\' || at_ + 1 == raw_.size()) {
      letter(raw_[at_], true);
      continue;
    }
    const char next = raw_[++at_];
    const std::size_t known = std::string_view("ntr\\'\"").find(next);
    if (known == std::string_view::npos) {
      unknown("$'\\" + std::string(1, next) + "'");
    } else {
      letter("\n\t\r\\'\""[known], true);
    }
  }
  ++at_;
}

void ShellValues::Expansion::dollar() {
  const std::size_t begin = at_;
  if (raw_[at_] == '`') {
    at_ = std::min(raw_.find('`', at_ + 1), raw_.size() - 1) + 1;
    return command("$(" + raw_.substr(begin + 1, at_ - begin - 2) + ")");
  }
  if (quote_ == '\0' && raw_.compare(at_, 2, "$\"") == 0) return void(++at_);
  if (raw_.compare(at_, 3, "$((") == 0) return sum();
  if (raw_.compare(at_, 2, "$(") == 0) {
    at_ = std::min(end_of_brackets(raw_, at_ + 1, '(', ')') + 1, raw_.size());
    return command(raw_.substr(begin, at_ - begin));
  }
  if (raw_.compare(at_, 2, "${") == 0) {
    const std::size_t end = end_of_brackets(raw_, at_ + 1, '{', '}');
    at_ = std::min(end + 1, raw_.size());
    return braced(raw_.substr(begin + 2, end - begin - 2), raw_.substr(begin, at_ - begin));
  }
  const std::size_t end = end_of_name(raw_, at_ + 1);
  at_ = end;
  if (end == begin + 1) return letter('$', quote_ != '\0');
  named(raw_.substr(begin + 1, end - begin - 1), raw_.substr(begin, end - begin));
}

void ShellValues::Expansion::sum() {
  const std::size_t begin = at_, end = end_of_brackets(raw_, at_ + 1, '(', ')');
  at_ = std::min(end + 1, raw_.size());
  const std::string inside = raw_.substr(begin + 3, end > begin + 4 ? end - begin - 4 : 0);
  const ShellText terms = values_.whole(inside, line_, branch_);
  const BranchPointer branch = branch_of(terms) ? branch_of(terms) : branch_;
  const auto value = values_.arithmetic(flat(terms), branch, line_);
  if (!value) return unknown(raw_.substr(begin, at_ - begin), branch);
  add({{std::to_string(*value), line_, branch}});
}

// $(...) of a command that computes from its words alone; others stay as they stand.
void ShellValues::Expansion::command(const std::string& text) {
  const std::optional<ShellText> output = text.size() > 3 && values_.depth_ < kDeepestOutput
                                              ? values_.output(text.substr(2, text.size() - 3), line_)
                                              : std::nullopt;
  output ? add(*output) : unknown(text);
}

// A variable that the text does not set stays as written, and is one word.
void ShellValues::Expansion::unknown(const std::string& text, const BranchPointer& branch) {
  open_ = true;
  const BranchPointer& of = branch ? branch : branch_;
  if (std::ranges::none_of(text, is_blank)) return append(word_, text, line_, of);
  word_.push_back({text, line_, of, true});
}

void ShellValues::Expansion::named(const std::string& name, const std::string& text) {
  const bool all = name == "@" || name == "*";
  if (name == "@" && values_.find(name) == nullptr) vanished_ = true;
  if (const ShellValue* value = values_.find(name)) return add_value(*value, all ? name[0] : '\0');
  if (!all) unknown(text);  // nobody gave arguments to the script itself
}

// `elements` is '@' or '*' for all of an array.
void ShellValues::Expansion::add_value(const ShellValue& value, char elements) {
  if (elements != '\0' && value.empty()) vanished_ = true;
  const bool joins = elements == '*' && (quote_ == '"' || !splits_);
  for (std::size_t i = 0; i < value.size() && (elements != '\0' || i == 0); ++i) {
    if (i > 0 && joins && separators_.empty()) {
    } else if (i > 0 && joins) {
      append(word_, separators_.substr(0, 1), line_, branch_);
    } else if (i > 0) {
      end_word(' ');
    }
    add(value[i]);
    if (quote_ == '"') open_ = true;
  }
}

void ShellValues::Expansion::end_word(char joint) {
  if (splits_) {
    if (open_) words_.push_back(std::exchange(word_, {}));
    open_ = false;
  } else {
    append(word_, std::string(1, joint), line_, branch_);
  }
}

void ShellValues::Expansion::add(const ShellText& text) {
  for (const ShellPiece& piece : text) {
    values_.spend(piece.text.size(), line_);
    const BranchPointer& branch = piece.branch ? piece.branch : branch_;
    if (piece.is_whole) {
      open_ = true;
      word_.push_back({piece.text, piece.line, branch, true});
    } else if (quote_ == '"' || !splits_) {
      open_ = true;
      put(piece.text, piece.line, branch, quote_ == '"');
    } else {
      for (const char one : piece.text) add_letter(one, piece, branch);
    }
  }
}

// Of a value outside quotes, which separators split into words.
void ShellValues::Expansion::add_letter(char one, const ShellPiece& piece, const BranchPointer& branch) {
  if (separators_.find(one) == std::string::npos) {
    open_ = true;
    after_blank_ = false;
    return append(word_, std::string(1, one), piece.line, branch);
  }
  if (is_blank(one)) {
    after_blank_ = after_blank_ || open_;
    return end_word(one);
  }
  // ",," holds an empty word, " ," none.
  open_ = open_ || !after_blank_;
  after_blank_ = false;
  end_word(one);
}

std::vector<ShellText> ShellValues::words(const ShellToken& word, const BranchPointer& branch) {
  spend(word.text.size(), word.line);
  const BranchPointer& of = word.branch ? word.branch : branch;
  std::vector<ShellText> all;
  for (const std::string& each : shell_alternatives(word.text))
    for (ShellText& text : Expansion(*this, each, word.line, of, true).run()) all.push_back(std::move(text));
  return all;
}

ShellText ShellValues::whole(const std::string& word, int line, const BranchPointer& branch) {
  spend(word.size(), line);
  std::vector<ShellText> one = Expansion(*this, word, line, branch, false).run();
  return one.empty() ? ShellText() : std::move(one.front());
}

ShellText ShellValues::pattern(const std::string& word, int line, bool is_regex) {
  spend(word.size(), line);
  const ShellPattern kind = is_regex ? ShellPattern::regex : ShellPattern::glob;
  std::vector<ShellText> one = Expansion(*this, word, line, nullptr, false, kind).run();
  return one.empty() ? ShellText() : std::move(one.front());
}

}  // namespace rehearse
