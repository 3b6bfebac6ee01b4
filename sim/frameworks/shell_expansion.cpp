#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "frameworks/shell_values.h"
#include "frameworks/shell_words.h"

namespace rehearse {

namespace {

constexpr int kDeepestDefault = 32;  // ${A:-${B:-...}}

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n';
}

std::size_t end_of_name(const std::string& text, std::size_t begin) {
  if (begin < text.size() &&
      std::string_view("@*#?!$-0123456789").find(text[begin]) != std::string_view::npos)
    return begin + 1;
  std::size_t end = begin;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
    ++end;
  return end;
}

// The end of the brackets that open at `begin`; quotes inside may hold brackets.
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

}  // namespace

// Expands one word of the script.
class ShellValues::Expansion {
 public:
  Expansion(ShellValues& values, std::string raw, int line, BranchPointer branch, bool splits)
      : values_(values), raw_(std::move(raw)), line_(line), branch_(std::move(branch)), splits_(splits) {}

  std::vector<ShellText> run() {
    while (at_ < raw_.size()) unit();
    if (open_ && !(vanished_ && flat(word_).empty())) words_.push_back(std::move(word_));
    return std::move(words_);
  }

 private:
  void letter(char one) {
    open_ = true;
    append(word_, std::string(1, one), line_, branch_);
    if (one == '\n') ++line_;
  }

  void unit() {
    const char one = raw_[at_];
    if (one == '\\' && at_ + 1 < raw_.size() && quote_ != '\'') return escaped();
    if (one == quote_) {
      quote_ = '\0';
      open_ = true;
    } else if (quote_ == '\0' && (one == '"' || one == '\'')) {
      quote_ = one;
      open_ = true;
    } else if (quote_ != '\'' && (one == '$' || one == '`')) {
      return dollar();
    } else {
      letter(one);
    }
    ++at_;
  }

  void escaped() {
    const char next = raw_[at_ + 1];
    at_ += 2;
    if (next == '\n') return void(++line_);
    const bool kept = quote_ == '"' && std::string_view("$`\"\\").find(next) == std::string_view::npos;
    if (kept) letter('\\');
    letter(next);
  }

  void dollar() {
    const std::size_t begin = at_;
    if (raw_[at_] == '`') {
      at_ = std::min(raw_.find('`', at_ + 1), raw_.size() - 1) + 1;
      return command("$(" + raw_.substr(begin + 1, at_ - begin - 2) + ")");
    }
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
    if (end == begin + 1) return letter('$');
    named(raw_.substr(begin + 1, end - begin - 1), raw_.substr(begin, end - begin), false);
  }

  void sum() {
    const std::size_t begin = at_, end = end_of_brackets(raw_, at_ + 1, '(', ')');
    at_ = std::min(end + 1, raw_.size());
    const std::string inside = raw_.substr(begin + 3, end > begin + 4 ? end - begin - 4 : 0);
    const ShellText terms = values_.whole(inside, line_, branch_);
    const auto value = values_.arithmetic(flat(terms));
    if (!value && branch_of(terms)) branch_ = branch_of(terms);
    if (!value) return unknown(raw_.substr(begin, at_ - begin));
    add({{std::to_string(*value), line_, branch_of(terms) ? branch_of(terms) : branch_}});
  }

  // $(...) of a command that computes from its words alone; others stay as they stand.
  void command(const std::string& text) {
    const std::optional<ShellText> output = text.size() > 3 && values_.depth_ < kDeepestDefault
                                                ? values_.output(text.substr(2, text.size() - 3), line_)
                                                : std::nullopt;
    output ? add(*output) : unknown(text);
  }

  // A variable that the text does not set stays as written.
  void unknown(std::string text) {
    open_ = true;
    std::erase_if(text, is_blank);  // it stays one word
    append(word_, text, line_, branch_);
  }

  void named(const std::string& name, const std::string& text, bool elements) {
    const bool all = name == "@" || name == "*";
    if (name == "@" && values_.find(name) == nullptr) vanished_ = true;
    if (const ShellValue* value = values_.find(name)) return add_value(*value, elements || all);
    if (!all) unknown(text);  // nobody gave arguments to the script itself
  }

  void add_value(const ShellValue& value, bool elements) {
    if (elements && value.empty()) vanished_ = true;
    for (std::size_t i = 0; i < value.size() && (elements || i == 0); ++i) {
      if (i > 0) end_word();
      add(value[i]);
      if (quote_ == '"') open_ = true;
    }
  }

  void end_word() {
    if (splits_) {
      if (open_) words_.push_back(std::exchange(word_, {}));
      open_ = false;
    } else {
      append(word_, " ", line_, branch_);
    }
  }

  void add(const ShellText& text) {
    for (const ShellPiece& piece : text) {
      values_.spend(piece.text.size(), line_);
      const BranchPointer& branch = piece.branch ? piece.branch : branch_;
      if (quote_ == '"' || !splits_) {
        open_ = true;
        append(word_, piece.text, piece.line, branch);
        continue;
      }
      for (const char one : piece.text) {
        if (is_blank(one)) {
          end_word();
        } else {
          open_ = true;
          append(word_, std::string(1, one), piece.line, branch);
        }
      }
    }
  }

  // ${NAME}, ${NAME[@]}, ${NAME[key]}, ${#NAME}, ${NAME:-default}, ${NAME%.sh} and their like; others stay as
  // they stand.
  void braced(const std::string& inside, const std::string& text) {
    if (inside.size() > 1 && inside[0] == '#') return count(inside.substr(1), text);
    if (inside.size() > 1 && inside[0] == '!') return indirect(inside.substr(1), text);
    std::size_t end = end_of_name(inside, 0);
    while (end > 0 && end < inside.size() && std::isdigit(static_cast<unsigned char>(inside[0])) != 0 &&
           std::isdigit(static_cast<unsigned char>(inside[end])) != 0)
      ++end;
    std::string name = inside.substr(0, end);
    std::string rest = inside.substr(end);
    const bool elements = rest.starts_with("[@]") || rest.starts_with("[*]");
    if (elements) rest.erase(0, 3);
    if (name.empty() || name == "#" || name == "!") return unknown(text);
    std::optional<ShellValue> element;
    if (rest.starts_with('[')) {
      const std::size_t close = end_of_brackets(rest, 0, '[', ']');
      element = values_.element(name, flat(values_.whole(rest.substr(1, close - 1), line_, branch_)));
      rest.erase(0, std::min(close + 1, rest.size()));
      if (!element && rest.empty()) return unknown(text);
    }
    const ShellValue* value = element ? &*element : values_.find(name);
    if (rest.empty()) return value ? add_value(*value, elements) : named(name, text, elements);
    changed(name, value, rest, elements, text);
  }

  void changed(const std::string& name, const ShellValue* value, const std::string& rest, bool elements,
               const std::string& text) {
    const bool filled = value && !(value->size() == 1 && value->front().empty()) && !value->empty();
    const bool colon = rest.starts_with(":");
    const std::string sign = rest.substr(colon ? 1 : 0, 1),
                      word = rest.substr(std::min<std::size_t>(rest.size(), colon ? 2 : 1));
    if (sign == "-" || sign == "=") {
      if (value && (filled || !colon)) return add_value(*value, elements);
      const ShellText other = otherwise(word);
      if (sign == "=" && is_shell_name(name)) values_.set(name, {other}, branch_);
      return add(other);
    }
    if (sign == "+") return value && (filled || !colon) ? add(otherwise(word)) : void();
    if (sign == "?") return value ? add_value(*value, elements) : unknown("$" + name);
    const bool is_known = value && !value->empty() && !branch_of(value->front()) &&
                          flat(value->front()).find('$') == std::string::npos;
    if (!is_known) return unknown(value && !value->empty() ? flat(value->front()) : text);
    const auto other = changed_value(flat(value->front()), flat(values_.whole(rest, line_, branch_)));
    other ? add({{*other, line_, branch_}}) : unknown(text);
  }

  // ${#NAME} and ${#NAME[@]}.
  void count(const std::string& inside, const std::string& text) {
    const std::size_t end = end_of_name(inside, 0);
    const ShellValue* value = values_.find(inside.substr(0, end));
    const std::string rest = inside.substr(end);
    if (value == nullptr) return unknown(text);
    if (rest == "[@]" || rest == "[*]") return add({{std::to_string(value->size()), line_, branch_}});
    if (!rest.empty() || value->empty() || branch_of(value->front())) return unknown(text);
    const std::string known = flat(value->front());
    known.find('$') == std::string::npos ? add({{std::to_string(known.size()), line_, branch_}})
                                         : unknown(text);
  }

  // ${!NAME}.
  void indirect(const std::string& name, const std::string& text) {
    const ShellValue* value = values_.find(name);
    const ShellValue* other =
        value && !value->empty() && !branch_of(value->front()) ? values_.find(flat(value->front())) : nullptr;
    other ? add_value(*other, false) : unknown(text);
  }

  ShellText otherwise(const std::string& word) {
    if (++values_.depth_ > kDeepestDefault)
      throw InputError({values_.file_, fmt::format("line {}", line_), "defaults nest too deep", "", ""});
    ShellText text = values_.whole(word, line_, branch_);
    --values_.depth_;
    return text;
  }

  ShellValues& values_;
  std::string raw_;
  int line_;
  BranchPointer branch_;
  bool splits_;
  std::size_t at_ = 0;
  char quote_ = '\0';
  bool open_ = false;      // a word has begun, maybe an empty one
  bool vanished_ = false;  // "$@" without arguments: with nothing beside it, it is no word
  ShellText word_;
  std::vector<ShellText> words_;
};

std::vector<ShellText> ShellValues::words(const ShellToken& word, const BranchPointer& branch) {
  spend(word.text.size(), word.line);
  return Expansion(*this, word.text, word.line, word.branch ? word.branch : branch, true).run();
}

ShellText ShellValues::whole(const std::string& word, int line, const BranchPointer& branch) {
  spend(word.size(), line);
  std::vector<ShellText> one = Expansion(*this, word, line, branch, false).run();
  return one.empty() ? ShellText() : std::move(one.front());
}

}  // namespace rehearse
