#include "base/text_file.h"

#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "base/error.h"

namespace rehearse {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& rule, const std::string& values = "",
                       const std::string& nearest = "the path of a file that may be read") {
  throw InputError({path, "", rule, values, nearest});
}

// One name for a file, by whatever path it is called.
std::string whole_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
  return error ? path : whole.string();
}

struct ReadFiles {
  std::mutex mutex;
  std::set<std::string> paths;
};

ReadFiles& read_files() {
  static ReadFiles files;
  return files;
}

void remember(const std::string& path) {
  ReadFiles& files = read_files();
  const std::lock_guard lock(files.mutex);
  files.paths.insert(whole_path(path));
}

}  // namespace

bool was_read(const std::string& path) {
  ReadFiles& files = read_files();
  const std::lock_guard lock(files.mutex);
  return files.paths.contains(whole_path(path));
}

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
  // Asked before it is opened: to open a pipe that nobody writes to is to wait.
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) fail(path, "cannot read this file", "there is none");
  if (kind != std::filesystem::file_type::regular)
    fail(path, "cannot read this file", "a folder, pipe or device");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "cannot read this file");
  remember(path);
  std::string text;
  std::array<char, 1 << 16> block;
  do {
    in.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > most_bytes)
      fail(path, fmt::format("a file of this kind has at most {} bytes", most_bytes), "", "a smaller file");
  } while (in);
  if (in.bad()) fail(path, "cannot read this file");
  return text;
}

}  // namespace rehearse
