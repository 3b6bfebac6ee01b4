#include "cli/output.h"

#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/text_file.h"
#include "cli/interruption.h"

namespace rehearse {

bool use_colour(Colour colour) {
  if (colour != Colour::automatic) return colour == Colour::always;
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
  };
  if (set("NO_COLOR")) return false;
  if (set("CLICOLOR_FORCE")) return true;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0) return false;
  return isatty(STDOUT_FILENO) == 1;
}

void add_colour_flag(CLI::App& verb, Colour& colour) {
  static const std::map<std::string, Colour> names = {
      {"auto", Colour::automatic}, {"always", Colour::always}, {"never", Colour::never}};
  verb.add_option("--color", colour, "colour on the terminal")
      ->transform(CLI::CheckedTransformer(names))
      ->option_text("auto|always|never");
}

namespace {

// A device or pipe is written as it stands: renaming a file over it would replace it.
bool is_special(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, why));
}

// Goes with its scope where it was not put in place.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) : name_(partial_name(path)) {
    remove_when_interrupted(name_);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    std::error_code ignored;
    std::filesystem::remove(name_, ignored);
    remove_when_interrupted("");
  }
  const std::string& name() const { return name_; }
  void put_in_place(const std::string& path) const {
    std::error_code error;
    std::filesystem::rename(name_, path, error);
    if (error) cannot_write(path, error.message());
  }

 private:
  std::string name_;
};

void write_through(const std::string& path, const std::string& file,
                   const std::function<void(std::ostream&)>& write) {
  std::ofstream out(file, std::ios::binary);
  if (!out) cannot_write(path, std::strerror(errno));
  write(out);
  out.close();
  if (!out) cannot_write(path, std::strerror(errno));
}

}  // namespace

std::string partial_name(const std::string& path) {
  return fmt::format("{}.partial-{}", path, getpid());
}

std::string as_path(const std::string& file) {
  const std::filesystem::path path(file);
  return path.has_parent_path() ? file : (std::filesystem::path(".") / path).string();
}

void require_apart(const std::vector<std::string>& files, Reads reads) {
  std::set<std::filesystem::path> met;
  for (const std::string& file : files) {
    if (file.empty() || file == "-" || is_special(file)) continue;
    if (reads == Reads::refused && was_read(file))
      throw InputError({file, "", "is read by this command and not written over", "", "another file"});
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(file, error);
    if (!met.insert(error ? std::filesystem::path(file) : whole).second)
      throw InputError({file, "", "is named for two things, of which one would be lost", "", "another file"});
  }
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  require_apart({path});
  replace_file(path, write);
}

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (is_special(path)) return write_through(path, path, write);
  const PartialFile partial(path);
  write_through(path, partial.name(), write);
  partial.put_in_place(path);
}

void require_writable(const std::vector<std::string>& paths) {
  require_apart(paths);
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path)) cannot_write(path, std::strerror(EISDIR));
    if (path.empty() || path == "-" || is_special(path)) continue;
    const PartialFile partial(path);
    write_through(path, partial.name(), [](std::ostream&) {});
  }
}

}  // namespace rehearse
