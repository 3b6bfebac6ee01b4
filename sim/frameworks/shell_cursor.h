// Where in the words and operators of a shell script does its reader stand?
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/shell_tokens.h"

namespace rehearse {

using ShellTokens = std::shared_ptr<const std::vector<ShellToken>>;

class ShellCursor {
 public:
  ShellCursor(std::string file, ShellTokens tokens) : file_(std::move(file)), tokens_(std::move(tokens)) {}

  bool ends() const { return at_ >= tokens_->size(); }
  const ShellToken& peek(std::size_t ahead = 0) const;  // the end of a line where nothing more stands
  bool at_word() const { return !ends() && peek().kind == ShellToken::Kind::word; }
  std::size_t at() const { return at_; }
  void advance() { ++at_; }
  void go(std::size_t to) { at_ = to; }

  bool at_line_begin() const { return at_ == 0 || (*tokens_)[at_ - 1].is("\n"); }
  bool take(const char* op);
  bool take_word(const char* word);  // behind blank lines
  void require_word(const char* word, int line);
  void skip_blank_lines();
  void skip_line_ends();

  // The words from one place to before another, as a message shows them.
  std::string shown(std::size_t begin, std::size_t end) const;
  std::vector<ShellToken> slice(std::size_t begin) const;  // up to here

  [[noreturn]] void fail(int line, const std::string& rule) const;

 private:
  std::string file_;
  ShellTokens tokens_;
  std::size_t at_ = 0;
};

}  // namespace rehearse
