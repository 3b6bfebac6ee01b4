// How is a text for the terminal put together, line by line?
#pragma once

#include <fmt/core.h>

#include <iterator>
#include <string>
#include <utility>

namespace rehearse {

class Lines {
 public:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace rehearse
