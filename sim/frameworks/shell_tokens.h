// Of which words and operators does a shell script consist? Quotes and $-expansions stay as they are written.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace rehearse {

// A branch, loop or list of the script; the text does not decide whether it runs.
struct ShellBranch {
  int line = 0;
  std::string condition;  // "if [ $AC = full ]"
  bool sets = false;      // it is a command that sets a variable to an unknown value
};
using BranchPointer = std::shared_ptr<const ShellBranch>;

// Whether the value of a text is its letters, or is open: then the text only names it, as "$(nproc --all)"
// does. As a word outside quotes, an open value is one word or any number of words, none included.
enum class ShellOpen {
  no,
  word,   // one word, such as the name of a host
  text,   // any text: one word in quotes, any number of words outside
  words,  // any number of elements of a list
  maybe,  // an element that a branch adds: its letters are known
};

// Text of one line of the file; with `branch` only where that branch is taken.
struct ShellPiece {
  std::string text;
  int line = 0;
  BranchPointer branch;
  ShellOpen open = ShellOpen::no;

  // Whether the text is the value, where the branch is taken.
  bool has_letters() const { return open == ShellOpen::no || open == ShellOpen::maybe; }
};
using ShellText = std::vector<ShellPiece>;

void append(ShellText& text, const std::string& more, int line, const BranchPointer& branch,
            ShellOpen open = ShellOpen::no);
void append(ShellText& text, const ShellText& more);
// The words separated by blanks. Pieces that depend on no branch then depend on `branch`.
ShellText joined(const std::vector<ShellText>& words, const BranchPointer& branch);
std::string flat(const ShellText& text);
BranchPointer branch_of(const ShellText& text);  // the first that any piece depends on
// Whether the script decides the text, in every branch alike.
bool is_decided(const ShellText& text);
// Whether the element stands for any number of elements.
bool is_many(const ShellText& element);

struct ShellToken {
  enum class Kind { word, op, here_document, here_string, input, output };
  Kind kind = Kind::word;
  // An operator is ";", "&&", "\n", ...; a here-document has its body, `<<< WORD`, `< WORD` and
  // `> WORD` their word.
  std::string text;
  int line = 0;
  BranchPointer branch;
  bool literal = false;      // a here-document whose $ stand for themselves
  std::string written_to{};  // the file that a here-document fills; "" where it is only read

  bool is(const char* op) const { return kind == Kind::op && text == op; }
  bool is_redirection() const { return kind != Kind::word && kind != Kind::op; }
  bool is_word(const char* word) const { return kind == Kind::word && text == word; }
};

// The text of a script that may itself come out of variables. Redirections of errors are left out.
// InputError for quotes and brackets that are not closed.
std::vector<ShellToken> shell_tokens(const ShellText& script, const std::string& file);

ShellText shell_text(const std::string& text, int first_line);

}  // namespace rehearse
