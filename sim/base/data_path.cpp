#include "base/data_path.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/names.h"
#include "base/read_record.h"
#include "base/text_file.h"
#include "base/unreadable.h"

namespace rehearse {

namespace fs = std::filesystem;

fs::path data_directory() {
  if (const char* chosen = std::getenv("REHEARSE_DATA"); chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = program.parent_path().parent_path() / "share" / "rehearse";
    if (fs::is_directory(installed, error)) return installed;
  }
  return REHEARSE_SOURCE_DIR;
}

std::vector<std::string> data_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data_directory() / folder, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  note_listed((data_directory() / folder).string(), names);
  return names;
}

namespace {

// Similar names of the data, and the file of this name in the working directory.
std::vector<std::string> similar(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::string> found = similar_names(name, names);
  for (const std::string& file : {name, name + ".json"})
    if (why_unreadable(file).empty()) found.insert(found.begin(), "./" + file);
  return found;
}

}  // namespace

std::string find_data_file(const std::string& what, const std::string& folder,
                           const std::string& name_or_path) {
  const bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json") ||
                       is_stream(name_or_path);
  const fs::path file =
      is_path ? fs::path(name_or_path) : data_directory() / folder / (name_or_path + ".json");
  const std::string why = why_unreadable(file);
  if (why.empty()) return file.string();
  note_unread(file);
  const std::vector<std::string> names = data_names(folder);
  if (!is_path && names.empty())
    throw InputError({"", what, "the program's data was not found",
                      fmt::format("looked in {}", (data_directory() / folder).string()),
                      "REHEARSE_DATA=FOLDER, a checkout or PREFIX/share/rehearse"});
  const std::string every =
      names.size() > kMaxListed
          ? fmt::format("no such {0}; `rehearse list {0}s` names all {1}", what, names.size())
          : fmt::format("no such {}; known are {}", what, join(names));
  if (!is_path)
    throw InputError(
        {"", what, every, fmt::format("asked for \"{}\"", name_or_path), join(similar(name_or_path, names))});
  Violation violation = unreadable(name_or_path, why, what);
  // The name with a wrong ending or folder.
  const std::string stem = fs::path(name_or_path).stem().string();
  if (std::ranges::find(names, stem) != names.end()) violation.nearest = stem;
  throw InputError(violation);
}

}  // namespace rehearse
