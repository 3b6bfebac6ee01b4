// A folder of its own for one test, and a small grid.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sweep/grid.h"

namespace rehearse {

class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path() / "rehearse-sweep-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

// 3 x 2 points: mbs 1, 2, 4 and schedule gpipe, 1f1b.
inline Grid small_grid() {
  return {{{"mbs", "/plan/micro_batch", {1, 2, 4}}, {"schedule", "/plan/schedule", {"gpipe", "1f1b"}}}};
}

}  // namespace rehearse
