#include "frameworks/shell_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "frameworks/shell_arithmetic.h"

namespace rehearse {

namespace {

constexpr std::size_t kMostLetters = 1 << 22;  // with variables written out, which may double each other
constexpr int kDeepestDefault = 32;            // ${A:-${B:-...}}
constexpr std::size_t kMostArguments = 9;      // with one digit

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

// The end of what stands in brackets that open at `begin`; quotes inside may hold brackets.
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

std::string cased(std::string text, bool upper) {
  for (char& letter : text)
    letter = static_cast<char>(upper ? std::toupper(static_cast<unsigned char>(letter))
                                     : std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace

bool is_shell_name(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         end_of_name(name, 0) == name.size();
}

bool is_shell_assignment(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (name.size() == word.size()) return false;
  if (name.ends_with('+')) name.pop_back();
  return is_shell_name(name);
}

// One word of the script on its way to those that it becomes.
class ShellValues::Expansion {
 public:
  Expansion(ShellValues& values, std::string raw, int line, BranchPointer branch, bool splits)
      : values_(values), raw_(std::move(raw)), line_(line), branch_(std::move(branch)), splits_(splits) {}

  std::vector<ShellText> run() {
    while (at_ < raw_.size()) unit();
    if (open_) words_.push_back(std::move(word_));
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
      return unknown("$(" + raw_.substr(begin + 1, at_ - begin - 2) + ")");
    }
    if (raw_.compare(at_, 3, "$((") == 0) return sum();
    if (raw_.compare(at_, 2, "$(") == 0) {
      at_ = std::min(end_of_brackets(raw_, at_ + 1, '(', ')') + 1, raw_.size());
      return unknown(raw_.substr(begin, at_ - begin));
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

  // What the text does not set, as it stands.
  void unknown(const std::string& text) {
    open_ = true;
    append(word_, text, line_, branch_);
  }

  void named(const std::string& name, const std::string& text, bool elements) {
    const bool all = name == "@" || name == "*";
    if (const ShellValue* value = values_.find(name)) return add_value(*value, elements || all);
    if (!all) unknown(text);  // nobody gave arguments to the script itself
  }

  void add_value(const ShellValue& value, bool elements) {
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

  // ${NAME}, ${NAME[@]}, ${NAME:-default}, ${NAME,,} and their like; others stay as they stand.
  void braced(const std::string& inside, const std::string& text) {
    const std::size_t end = end_of_name(inside, 0);
    const std::string name = inside.substr(0, end);
    std::string rest = inside.substr(end);
    const bool elements = rest.starts_with("[@]") || rest.starts_with("[*]");
    if (elements) rest.erase(0, 3);
    if (name.empty() || name == "#" || name == "!") return unknown(text);
    if (rest.empty()) return named(name, text, elements);
    const ShellValue* value = values_.find(name);
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
    if (sign == "+" && value) return filled || !colon ? add(otherwise(word)) : void();
    if (sign == "?" && value) return add_value(*value, elements);
    if ((rest == ",," || rest == "^^") && value && !value->empty()) {
      ShellText changed = value->front();
      for (ShellPiece& piece : changed) piece.text = cased(piece.text, rest == "^^");
      return add(changed);
    }
    unknown(text);
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
  bool open_ = false;  // a word has begun, maybe an empty one
  ShellText word_;
  std::vector<ShellText> words_;
};

void ShellValues::spend(std::size_t letters, int line) {
  spent_ += letters;
  if (spent_ > kMostLetters)
    throw InputError({file_, fmt::format("line {}", line),
                      fmt::format("with its variables written out, a script has at most {} characters in all",
                                  kMostLetters),
                      "", ""});
}

std::vector<ShellText> ShellValues::words(const ShellToken& word, const BranchPointer& branch) {
  spend(word.text.size(), word.line);
  return Expansion(*this, word.text, word.line, word.branch ? word.branch : branch, true).run();
}

ShellText ShellValues::whole(const std::string& word, int line, const BranchPointer& branch) {
  spend(word.size(), line);
  std::vector<ShellText> one = Expansion(*this, word, line, branch, false).run();
  return one.empty() ? ShellText() : std::move(one.front());
}

const ShellValue* ShellValues::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void ShellValues::set(const std::string& name, ShellValue value, const BranchPointer& branch) {
  const auto before = values_.find(name);
  if (branch && before != values_.end()) {
    for (const ShellText& element : before->second)
      spend(flat(element).size() + element.size(), branch->line);
    ShellText either = before->second.empty() ? ShellText() : before->second.front();
    for (ShellPiece& piece : either)
      if (!piece.branch) piece.branch = branch;
    if (either.empty()) either.push_back({"", branch->line, branch});
    if (value.empty()) value.emplace_back();
    ShellText& first = value.front();
    first.insert(first.begin(), {" ", branch->line, branch});
    first.insert(first.begin(), either.begin(), either.end());
    for (std::size_t i = 1; i < before->second.size(); ++i) value.push_back(before->second[i]);
  }
  values_[name] = std::move(value);
}

void ShellValues::assign(const ShellToken& word, const BranchPointer& given) {
  const std::size_t equals = word.text.find('=');
  const bool adds = word.text[equals - 1] == '+';
  const std::string name = word.text.substr(0, equals - (adds ? 1 : 0));
  const BranchPointer branch = word.branch ? word.branch : given;
  const std::string raw = word.text.substr(equals + 1);
  ShellValue value;
  const bool is_list = raw.starts_with('(') && raw.ends_with(')');
  if (is_list) {
    const ShellText inside = shell_text(raw.substr(1, raw.size() - 2), word.line);
    for (const ShellToken& token : shell_tokens(inside, file_))
      if (token.kind == ShellToken::Kind::word)
        for (ShellText& element : words(token, branch)) value.push_back(std::move(element));
  } else {
    value.push_back(whole(raw, word.line, branch));
    if (branch && value.front().empty()) value.front().push_back({"", word.line, branch});
  }
  const ShellValue* before = find(name);
  if (!adds || before == nullptr) return set(name, std::move(value), adds ? nullptr : branch);
  ShellValue all = *before;
  if (is_list) {
    all.insert(all.end(), value.begin(), value.end());
  } else if (!value.empty()) {
    if (all.empty()) all.emplace_back();
    all.front().insert(all.front().end(), value.front().begin(), value.front().end());
  }
  set(name, std::move(all), nullptr);
}

void ShellValues::set_arguments(const std::vector<ShellText>& arguments) {
  values_["@"] = values_["*"] = arguments;
  for (std::size_t i = 0; i < kMostArguments; ++i) {
    const ShellText argument = i < arguments.size() ? arguments[i] : ShellText();
    values_[std::to_string(i + 1)] = {argument};
  }
}

void ShellValues::forget_arguments() {
  for (const char* all : {"@", "*"}) values_.erase(all);
  for (std::size_t i = 0; i < kMostArguments; ++i) values_.erase(std::to_string(i + 1));
}

std::optional<std::int64_t> ShellValues::arithmetic(const std::string& expression, int depth) {
  if (depth > 8) return std::nullopt;
  return shell_arithmetic(expression, [&](const std::string& name) -> std::optional<std::int64_t> {
    const ShellValue* value = find(name);
    if (value == nullptr || value->empty() || branch_of(value->front())) return std::nullopt;
    return arithmetic(flat(value->front()), depth + 1);
  });
}

}  // namespace rehearse
