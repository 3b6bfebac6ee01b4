// Which words does one word of a shell script become? Used by ShellValues alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frameworks/shell_values.h"

namespace rehearse {

// Whether quotes keep letters from their meaning in a pattern.
enum class ShellPattern { none, glob, regex };

class ShellValues::Expansion {
 public:
  // `quote`: '"' for the word of "${NAME:-word}", in which single quotes stand for themselves.
  Expansion(ShellValues& values, std::string raw, int line, BranchPointer branch, bool splits,
            ShellPattern pattern = ShellPattern::none, char quote = '\0')
      : values_(values),
        raw_(std::move(raw)),
        line_(line),
        branch_(std::move(branch)),
        splits_(splits),
        pattern_(pattern),
        separators_(values.separators()),
        quote_(quote),
        in_quotes_(quote == '"') {}

  std::vector<ShellText> run();

 private:
  void put(const std::string& text, int line, const BranchPointer& branch, bool is_literal);
  void letter(char one, bool is_literal);
  void unit();
  void escaped();
  void ansi_quoted();
  void dollar();
  void sum();
  void command(const std::string& text);
  void unknown(const std::string& text, const BranchPointer& branch = nullptr);
  bool splits_here() const { return splits_ && quote_ != '"'; }
  void inlined(const std::string& word);
  void finish_word();
  void note_glob(char one);
  void named(const std::string& name, const std::string& text);
  void add_value(const ShellValue& value, char elements);
  void end_word(char joint);
  void add(const ShellText& text, bool is_element = false);
  void add_letter(char one, const ShellPiece& piece, const BranchPointer& branch);

  // ${...}
  void braced(const std::string& inside, const std::string& text);
  void changed(const std::string& name, const ShellValue* value, const std::string& rest, char elements,
               const std::string& text);
  ShellText change_of(const std::string& rest);
  void defaulted(const std::string& name, const ShellValue* value, const std::string& rest, char elements);
  void sliced(const ShellValue& value, bool is_arguments, const std::string& range, char elements,
              const std::string& text);
  void count(const std::string& inside, const std::string& text);
  void indirect(const std::string& inside, const std::string& text);
  std::optional<ShellValue> element(const std::string& name, const std::string& subscript);
  ShellText number(std::size_t value) const { return {{std::to_string(value), line_, branch_}}; }

  ShellValues& values_;
  std::string raw_;
  int line_;
  BranchPointer branch_;
  bool splits_;
  ShellPattern pattern_;
  std::optional<std::string> separators_;
  std::size_t at_ = 0;
  char quote_ = '\0';
  bool in_quotes_ = false;
  bool is_inlined_ = false;   // letters are split as those of a value are
  bool globs_ = false;        // the word may name files
  bool brackets_ = false;     // "[" of a pattern
  bool open_ = false;         // a word has begun, maybe an empty one
  bool after_blank_ = false;  // a blank has ended the last word of a value
  bool vanished_ = false;     // "$@" without arguments: with nothing beside it, it is no word
  ShellText word_;
  std::vector<ShellText> words_;
};

// The end of the brackets that open at `begin`; quotes inside may hold brackets. `in_quotes`: single quotes
// are letters.
std::size_t end_of_brackets(const std::string& text, std::size_t begin, char open, char close,
                            bool in_quotes = false);
// The end of the name or of the special parameter that begins there.
std::size_t end_of_name(const std::string& text, std::size_t begin);
// a{b,c}d and a{1..3}; the word alone where it holds neither. None where they are more than any script has.
std::optional<std::vector<std::string>> shell_alternatives(const std::string& word);

}  // namespace rehearse
