// Where does a test write? Into a folder of its own, which goes with it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rehearse {

class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path() / "rehearse-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path() const { return folder_; }
  std::string file(const std::string& name) const { return folder_ / name; }
  // The path of the file, which holds `text` from now on.
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return file(name);
  }
  // Names of its entries.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      found.push_back(entry.path().filename());
    return found;
  }

 private:
  std::filesystem::path folder_;
};

// The folder of all tests of one process.
inline const Scratch& scratch() {
  static const Scratch folder;
  return folder;
}

}  // namespace rehearse
