#include "frameworks/layer_pattern.h"

#include <charconv>
#include <string_view>

namespace rehearse {

namespace {

class Pattern {
 public:
  Pattern(const std::string& text, std::int64_t layers) : layers_(static_cast<std::size_t>(layers)) {
    for (const char c : text)
      if (c != ' ' && c != '(' && c != ')') text_ += c;
    rest_ = text_;
  }

  std::optional<std::vector<bool>> read() {
    if (!rest_.starts_with('[')) return every();
    do {
      if (!list()) return std::nullopt;
    } while (take('+'));
    if (!rest_.empty() || entries_.size() != layers_) return std::nullopt;
    return entries_;
  }

 private:
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<std::size_t> number() {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::optional<std::vector<bool>> every() {
    const auto step = number();
    if (!step || *step == 0 || !rest_.empty()) return std::nullopt;
    for (std::size_t layer = 0; layer < layers_; ++layer) entries_.push_back(layer % *step == 0);
    return entries_;
  }

  // "[0,1]" or "[0]*3".
  bool list() {
    std::vector<bool> some;
    if (!take('[')) return false;
    do {
      const auto entry = number();
      if (!entry || *entry > 1) return false;
      some.push_back(*entry == 1);
    } while (take(','));
    if (!take(']')) return false;
    const auto times = take('*') ? number() : std::optional<std::size_t>(1);
    if (!times || *times > layers_) return false;
    for (std::size_t i = 0; i < *times && entries_.size() <= layers_; ++i)
      entries_.insert(entries_.end(), some.begin(), some.end());
    return true;
  }

  std::size_t layers_;
  std::string text_;
  std::string_view rest_;
  std::vector<bool> entries_;
};

}  // namespace

std::optional<std::vector<bool>> layer_pattern(const std::string& text, std::int64_t layers) {
  return Pattern(text, layers).read();
}

}  // namespace rehearse
