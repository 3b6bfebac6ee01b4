#include "base/unreadable.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/data_path.h"
#include "base/names.h"

namespace rehearse {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEntries = 10'000;  // of a folder that are examined

// Names in a folder, sorted, without those that begin with a dot.
std::vector<std::string> entries_of(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, error);
  for (; !error && entry != fs::directory_iterator() && names.size() < kMaxEntries; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Files of the program's data with such a name.
std::vector<std::string> shipped_like(const fs::path& path) {
  std::vector<std::string> files;
  for (const char* folder : {"scenarios", "scenarios/models", "topologies", "calibrate/profiles"}) {
    const std::vector<std::string> names = data_names(folder);
    if (std::ranges::find(names, path.stem().string()) != names.end())
      files.push_back((data_directory() / folder / path.stem()).string() + ".json");
  }
  return files;
}

std::vector<std::string> similar_files(const fs::path& path) {
  std::vector<std::string> files;
  for (const std::string& name : similar_names(path.filename().string(), entries_of(path.parent_path())))
    files.push_back((path.parent_path() / name).string());
  return files.empty() ? shipped_like(path) : files;
}

Violation missing(const fs::path& path, const std::string& what) {
  std::error_code error;
  const fs::path folder = path.parent_path();
  const std::string rule = what.empty() ? "no such file" : fmt::format("no such {} file", what);
  if (fs::is_symlink(fs::symlink_status(path, error)))
    return {path.string(), "", rule, "a link to " + fs::read_symlink(path, error).string(), ""};
  const bool has_folder = folder.empty() || fs::exists(folder, error);
  return {path.string(), "", rule, has_folder ? "" : fmt::format("there is no folder {}", folder.string()),
          join(similar_files(path))};
}

// The user may have meant a text file in the folder.
Violation folder_instead(const fs::path& path, const std::string& what) {
  constexpr std::size_t kMaxShown = 3;
  std::vector<std::string> files;
  for (const std::string& name : entries_of(path))
    if (name.ends_with(".json") && files.size() < kMaxShown) files.push_back((path / name).string());
  return {path.string(), "", fmt::format("is a folder, not a {}{}file", what, what.empty() ? "" : " "), "",
          join(files)};
}

}  // namespace

Violation unreadable(const std::string& path, const std::string& why, const std::string& what) {
  if (why == kNoSuchFile) return missing(path, what);
  if (why == kIsFolder) return folder_instead(path, what);
  return {path, "", fmt::format("cannot read this {}{}file", what, what.empty() ? "" : " "), why, ""};
}

}  // namespace rehearse
