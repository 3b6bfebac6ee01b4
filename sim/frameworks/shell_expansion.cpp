#include "frameworks/shell_expansion.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr const char* kSeparators = " \t\n";

// A copy of a piece takes as long as so many letters.
constexpr std::size_t kLettersOfAPiece = 16;

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n';
}

// "~/x" begins with the home folder, which the text does not decide. In a value so does a path behind ':'.
std::string with_home(const std::string& word, bool is_value) {
  if (word.find('~') == std::string::npos) return word;
  std::string all;
  bool may_begin = true;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const std::size_t end = std::min(word.find_first_of("/:", at), word.size());
    const std::string user = word.substr(at, end - at);
    if (may_begin &&
        user.find_first_not_of("~+-._abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos &&
        user.starts_with('~')) {
      all += user == "~" ? "\"$HOME\"" : "\"$(getent passwd '" + user.substr(1) + "')\"";
      at = end;
      if (at == word.size()) break;
    }
    if (std::string_view("\"'$`\\").find(word[at]) != std::string_view::npos) return all + word.substr(at);
    may_begin = is_value && word[at] == ':';
    all += word[at];
  }
  return all;
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

std::size_t end_of_brackets(const std::string& text, std::size_t begin, char open, char close,
                            bool in_quotes) {
  int depth = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '\'' && (open == '(' || !in_quotes)) {
      at = std::min(text.find('\'', at + 1), text.size());
    } else if (text[at] == '"' && open == '{') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
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
  if (open_ && !(vanished_ && flat(word_).empty())) finish_word();
  return std::move(words_);
}

// Files decide how many words a pattern becomes.
void ShellValues::Expansion::finish_word() {
  if (std::exchange(globs_, false))
    for (ShellPiece& piece : word_) piece.open = ShellOpen::words;
  brackets_ = false;
  words_.push_back(std::exchange(word_, {}));
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
  if (is_inlined_ && !is_literal && splits_here()) return add_letter(one, {{}, line_, branch_}, branch_);
  if (!is_literal) note_glob(one);
  open_ = true;
  put(std::string(1, one), line_, branch_, is_literal);
  if (one == '\n') ++line_;
}

void ShellValues::Expansion::unit() {
  const char one = raw_[at_];
  if (one == '\\' && at_ + 1 < raw_.size() && quote_ != '\'') return escaped();
  if (quote_ == '\0' && !in_quotes_ && raw_.compare(at_, 2, "$'") == 0) return ansi_quoted();
  if (one == quote_) {
    quote_ = '\0';
    open_ = true;
  } else if (quote_ == '\0' && (one == '"' || (one == '\'' && !in_quotes_))) {
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
  const bool kept = quote_ == '"' && std::string_view("$`\"\\").find(next) == std::string_view::npos &&
                    !(in_quotes_ && next == '}');
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
    const std::size_t end = end_of_brackets(raw_, at_ + 1, '{', '}', quote_ == '"' || in_quotes_);
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

// $(...) of a command that the runner can follow; others stay as they stand.
void ShellValues::Expansion::command(const std::string& text) {
  std::optional<ShellText> output;
  if (text.size() > 3 && values_.output_) output = values_.output_(text.substr(2, text.size() - 3), line_);
  output ? add(*output) : unknown(text);
}

// An open value stays as written. "$@" and "${NAME[@]}" are any number of words in quotes too.
void ShellValues::Expansion::unknown(const std::string& text, const BranchPointer& branch) {
  open_ = true;
  const BranchPointer& of = branch ? branch : branch_ ? branch_ : values_.scope_.lost;
  const bool is_list = splits_ && (text == "$@" || (text.starts_with("${") && !text.starts_with("${#") &&
                                                    text.find('@') != std::string::npos));
  word_.push_back({text, line_, of, splits_here() || is_list ? ShellOpen::words : ShellOpen::text});
}

void ShellValues::Expansion::note_glob(char one) {
  if (!splits_here()) return;
  brackets_ = brackets_ || one == '[';
  globs_ = globs_ || one == '*' || one == '?' || (one == ']' && brackets_);
}

// The word of ${NAME:-word} outside quotes is split as a value is, but for its own quotes.
void ShellValues::Expansion::inlined(const std::string& word) {
  const std::string raw = std::exchange(raw_, word);
  const std::size_t at = std::exchange(at_, 0);
  const bool outer = std::exchange(is_inlined_, true);
  while (at_ < raw_.size()) unit();
  raw_ = raw;
  at_ = at;
  is_inlined_ = outer;
}

void ShellValues::Expansion::named(const std::string& name, const std::string& text) {
  const bool all = name == "@" || name == "*";
  if (name == "@" && values_.find(name) == nullptr) vanished_ = true;
  if (const ShellValue* value = values_.find(name)) return add_value(*value, all ? name[0] : '\0');
  if (!all || values_.scope_.lost) unknown(text);  // nobody gave arguments to the script itself
}

// `elements` is '@' or '*' for all of an array.
void ShellValues::Expansion::add_value(const ShellValue& value, char elements) {
  if (elements == '@' && value.empty()) vanished_ = true;
  const bool joins = elements == '*' && (quote_ == '"' || !splits_);
  if (joins && !separators_ && value.size() > 1) return unknown("$*");
  for (std::size_t i = 0; i < value.size() && (elements != '\0' || i == 0); ++i) {
    if (i > 0 && joins && separators_->empty()) {
    } else if (i > 0 && joins) {
      append(word_, separators_->substr(0, 1), line_, branch_);
    } else if (i > 0) {
      end_word(' ');
    }
    add(value[i], elements != '\0' && !joins);
    if (quote_ == '"') open_ = true;
  }
}

void ShellValues::Expansion::end_word(char joint) {
  if (splits_) {
    if (open_) finish_word();
    open_ = false;
  } else {
    append(word_, std::string(1, joint), line_, branch_);
  }
}

// In a branch a value outside quotes may have other words than outside the branch.
void ShellValues::Expansion::add(const ShellText& text, bool is_element) {
  for (const ShellPiece& piece : text) {
    values_.spend(kLettersOfAPiece + piece.text.size(), line_);
    const BranchPointer& branch = piece.branch ? piece.branch : branch_;
    const bool keeps_many = is_element && splits_ && is_many({piece});
    if (!piece.has_letters()) {
      open_ = true;
      const bool is_word = piece.open == ShellOpen::word && (!splits_here() || separators_ == kSeparators);
      const ShellOpen open = is_word                       ? ShellOpen::word
                             : keeps_many || splits_here() ? ShellOpen::words
                                                           : ShellOpen::text;
      word_.push_back({piece.text, piece.line, branch, open});
    } else if (!splits_here()) {
      open_ = true;
      if (keeps_many)
        word_.push_back({piece.text, piece.line, branch, ShellOpen::maybe});
      else
        put(piece.text, piece.line, branch, quote_ == '"');
    } else if (!separators_) {
      open_ = true;
      word_.push_back({piece.text, piece.line, branch, ShellOpen::words});
    } else {
      for (const char one : piece.text) add_letter(one, piece, branch);
    }
  }
}

// Of a value outside quotes, which separators split into words.
void ShellValues::Expansion::add_letter(char one, const ShellPiece& piece, const BranchPointer& branch) {
  if (separators_->find(one) == std::string::npos) {
    open_ = true;
    after_blank_ = false;
    note_glob(one);
    const bool is_sure = !piece.branch || piece.branch == branch_;
    return append(word_, std::string(1, one), piece.line, branch, is_sure ? ShellOpen::no : ShellOpen::maybe);
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
  const auto each_of = shell_alternatives(word.text);
  if (!each_of) return {{{word.text, word.line, of, ShellOpen::words}}};
  std::vector<ShellText> all;
  for (const std::string& each : *each_of)
    for (ShellText& text : Expansion(*this, with_home(each, false), word.line, of, true).run())
      all.push_back(std::move(text));
  return all;
}

ShellText ShellValues::whole(const std::string& word, int line, const BranchPointer& branch, bool in_quotes) {
  spend(word.size(), line);
  std::vector<ShellText> one =
      Expansion(*this, word, line, branch, false, ShellPattern::none, in_quotes ? '"' : '\0').run();
  return one.empty() ? ShellText() : std::move(one.front());
}

ShellText ShellValues::assigned(const std::string& word, int line, const BranchPointer& branch) {
  return whole(with_home(word, true), line, branch);
}

ShellText ShellValues::pattern(const std::string& word, int line, bool is_regex) {
  spend(word.size(), line);
  const ShellPattern kind = is_regex ? ShellPattern::regex : ShellPattern::glob;
  std::vector<ShellText> one = Expansion(*this, word, line, nullptr, false, kind).run();
  return one.empty() ? ShellText() : std::move(one.front());
}

}  // namespace rehearse
