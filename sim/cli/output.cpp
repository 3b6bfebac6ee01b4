#include "cli/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ext/stdio_filebuf.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "base/error.h"
#include "base/interruption.h"
#include "base/text_file.h"
#include "base/utf8.h"

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

VerbOption colour_option(Colour& colour) {
  static const std::map<std::string, Colour> names = {
      {"auto", Colour::automatic}, {"always", Colour::always}, {"never", Colour::never}};
  return {.names = {"--color"},
          .target = [&colour](const std::vector<std::string>& given) { colour = names.at(given.back()); },
          .help = "colour on the terminal",
          .value = "auto|always|never",
          .words = {"auto", "always", "never"},
          .arity = Arity::one_each_time,
          .group = HelpGroup::output,
          .daily = false};
}

namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // like the system

// A device or pipe is opened and written directly: renaming a file over it would replace it.
bool is_special(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw std::runtime_error(
      fmt::format("cannot write {}: {}", path == "-" ? "to standard output" : path, std::strerror(error)));
}

// The target of a link, existing or not.
std::string followed(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, error)); ++links) {
    if (links == kMaxLinks) cannot_write(path, ELOOP);
    at = at.parent_path() / fs::read_symlink(at, error);
    if (error) cannot_write(path, error.value());
  }
  return at.string();
}

// A descriptor to write to, closed with its scope.
class Sink {
 public:
  // Overwrites an existing file.
  explicit Sink(const std::string& path) : Sink(path, open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)) {}
  // Owns the descriptor; `name` is for errors.
  Sink(std::string name, int file)
      : name_(std::move(name)), buffer_(opened(file), std::ios::out | std::ios::binary) {}

  void write(const std::function<void(std::ostream&)>& writer) {
    std::ostream out(&buffer_);
    writer(out);
    if (!out.flush()) cannot_write(name_, errno);
  }
  void finish() {
    if (buffer_.close() == nullptr) cannot_write(name_, errno);
  }

 private:
  int opened(int file) const {
    if (file < 0) cannot_write(name_, errno);
    return file;
  }
  std::string name_;
  __gnu_cxx::stdio_filebuf<char> buffer_;
};

// A temporary file beside its target, with the same mode and owner. It is removed with its scope unless it
// was renamed.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path)
      : path_(path), target_(followed(path)), name_(partial_name(target_)) {
    remove_when_interrupted(name_);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    unlink(name_.c_str());
    remove_when_interrupted("");
  }
  void write(const std::function<void(std::ostream&)>& writer) const {
    unlink(name_.c_str());  // of an earlier process of this number
    struct stat before = {};
    const bool is_there = stat(target_.c_str(), &before) == 0;
    const int file =
        open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_there ? S_IRUSR | S_IWUSR : 0666);
    Sink sink(path_, file);
    if (is_there) keep_owner_and_mode(file, before);
    sink.write(writer);
    sink.finish();
  }
  void put_in_place() const {
    if (rename(name_.c_str(), target_.c_str()) != 0) cannot_write(path_, errno);
  }

 private:
  // A process that may not change the owner stays owner, and removes set-id bits.
  static void keep_owner_and_mode(int file, const struct stat& before) {
    const bool is_given = fchown(file, before.st_uid, before.st_gid) == 0;
    fchmod(file, before.st_mode & (is_given ? 07777 : 0777));
  }

  std::string path_, target_, name_;
};

// Redirects data to the original standard output; all later messages go to stderr.
int standard_output() {
  static const int data = [] {
    std::fflush(stdout);
    const int file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return file;
  }();
  return data;
}

// For a terminal: data of a user's files can't control it. The line breaks of CSV become those of the
// terminal.
void write_printable(std::ostream& out, const std::function<void(std::ostream&)>& write) {
  std::ostringstream text;
  write(text);
  std::string line;
  for (std::istringstream lines(text.str()); std::getline(lines, line);)
    out << printable(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line) << '\n';
}

void write_standard_output(const std::function<void(std::ostream&)>& write) {
  Sink sink("-", fcntl(standard_output(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (isatty(standard_output()) == 1)
    sink.write([&](std::ostream& out) { write_printable(out, write); });
  else
    sink.write(write);
  sink.finish();
}

}  // namespace

std::string partial_name(const std::string& path) {
  return fmt::format("{}.partial-{}", path, getpid());
}

std::string as_path(const std::string& file) {
  const fs::path path(file);
  return path.has_parent_path() ? file : (fs::path(".") / path).string();
}

void require_file(const std::string& flag, const std::string& path) {
  if (path == "-")
    throw InputError({"command line", flag,
                      "goes on with what the file holds, and standard output holds nothing", "found \"-\"",
                      "a file"});
}

void require_apart(const std::vector<std::string>& files, Reads reads) {
  std::set<fs::path> met;
  for (const std::string& file : files) {
    if (file.empty() || (file != "-" && is_special(file))) continue;
    if (file != "-" && reads == Reads::refused && was_read(file))
      throw InputError({file, "", "is read by this command and not written over", "", "another file"});
    std::error_code error;
    const fs::path whole = file == "-" ? fs::path(file) : fs::weakly_canonical(file, error);
    if (!met.insert(error ? fs::path(file) : whole).second)
      throw InputError({file == "-" ? "standard output" : file, "",
                        "is named for two things, of which one would be lost", "", "another file"});
  }
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  require_apart({path});
  replace_file(path, write);
}

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (path == "-") return write_standard_output(write);
  if (is_special(path)) {
    Sink sink(path);
    sink.write(write);
    return sink.finish();
  }
  const PartialFile partial(path);
  partial.write(write);
  partial.put_in_place();
}

void require_writable(const std::vector<std::string>& paths, Prints prints) {
  std::vector<std::string> all = paths;
  if (prints == Prints::data) all.emplace_back("-");
  require_apart(all);
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path == "-") standard_output();
    if (fs::is_directory(path, ignored)) cannot_write(path, EISDIR);
    if (path.empty() || path == "-" || is_special(path)) continue;
    PartialFile(path).write([](std::ostream&) {});
  }
}

}  // namespace rehearse
