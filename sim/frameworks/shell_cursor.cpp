#include "frameworks/shell_cursor.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr std::size_t kLongestCondition = 80;

}  // namespace

const ShellToken& ShellCursor::peek(std::size_t ahead) const {
  static const ShellToken none{ShellToken::Kind::op, "\n", 0, nullptr, false};
  return at_ + ahead < tokens_->size() ? (*tokens_)[at_ + ahead] : none;
}

bool ShellCursor::take(const char* op) {
  if (ends() || !peek().is(op)) return false;
  ++at_;
  return true;
}

bool ShellCursor::take_word(const char* word) {
  skip_blank_lines();
  if (ends() || !peek().is_word(word)) return false;
  ++at_;
  return true;
}

void ShellCursor::require_word(const char* word, int line) {
  if (!take_word(word)) fail(line, fmt::format("what begins here lacks its \"{}\"", word));
}

void ShellCursor::skip_blank_lines() {
  while (!ends() && (peek().is("\n") || peek().is(";") || peek().is("&") || peek().is_redirection())) ++at_;
}

void ShellCursor::skip_line_ends() {
  while (take("\n")) {
  }
}

std::string ShellCursor::shown(std::size_t begin, std::size_t end) const {
  std::string text;
  for (std::size_t i = begin; i < std::min(end, tokens_->size()) && text.size() < kLongestCondition; ++i) {
    if ((*tokens_)[i].is_redirection()) continue;
    const std::string& word = (*tokens_)[i].text;
    if (word != "\n" && word != ";") text += (text.empty() ? "" : " ") + word;
  }
  return text.substr(0, kLongestCondition);
}

std::vector<ShellToken> ShellCursor::slice(std::size_t begin) const {
  const auto end = static_cast<std::ptrdiff_t>(std::min(at_, tokens_->size()));
  return {tokens_->begin() + std::min(static_cast<std::ptrdiff_t>(begin), end), tokens_->begin() + end};
}

void ShellCursor::fail(int line, const std::string& rule) const {
  throw InputError({file_, fmt::format("line {}", line), rule, "", ""});
}

}  // namespace rehearse
