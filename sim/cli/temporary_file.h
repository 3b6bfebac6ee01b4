// How do this program and a started one exchange a text? Through a file without a name, which is gone when
// this process ends, however that happens.
#pragma once

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace rehearse {

class TemporaryFile {
 public:
  // The file is read from its beginning.
  explicit TemporaryFile(const std::string& text = "") : file_(std::tmpfile()) {
    if (!file_ || std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
        std::fflush(file_.get()) != 0)
      throw std::runtime_error("cannot write a temporary file");
    std::rewind(file_.get());
  }
  int handle() const { return fileno(file_.get()); }
  std::string contents() const {
    std::rewind(file_.get());
    std::string text;
    std::array<char, 65536> some;
    while (const std::size_t count = std::fread(some.data(), 1, some.size(), file_.get()))
      text.append(some.data(), count);
    return text;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace rehearse
