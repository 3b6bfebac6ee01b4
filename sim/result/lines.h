// How is a text for the terminal put together, line by line?
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace rehearse {

class Lines {
 public:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace rehearse
