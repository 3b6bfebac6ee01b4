#include "base/text_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/read_record.h"
#include "base/unreadable.h"

namespace rehearse {

namespace {

[[noreturn]] void fail_to_read(const std::string& path, const std::string& why) {
  throw InputError(unreadable(path, why));
}

[[noreturn]] void fail_of_size(const std::string& path, std::size_t most_bytes) {
  throw InputError(
      {path, "", fmt::format("a file of this kind has at most {} bytes", most_bytes), "", "a smaller file"});
}

// One name for a file, for all paths that lead to it.
std::string whole_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
  return error ? path : whole.string();
}

struct ReadFiles {
  std::mutex mutex;
  std::set<std::string> paths;
  std::mutex stream_mutex;
  std::map<std::string, std::string> streams;  // text of each, by stream_name()
};

ReadFiles& read_files() {
  static ReadFiles files;
  return files;
}

void remember(const std::string& path) {
  if (path == "-") return;
  ReadFiles& files = read_files();
  const std::lock_guard lock(files.mutex);
  files.paths.insert(whole_path(path));
}

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (file_ >= 0) close(file_);
  }
  int get() const { return file_; }

 private:
  int file_;
};

std::string reason(int error) {
  return error == ENOENT ? kNoSuchFile : std::strerror(error);
}

// The reason why a file of this kind is not read; "" for a regular one.
std::string why_not(const struct stat& kind) {
  if (S_ISREG(kind.st_mode)) return "";
  if (S_ISDIR(kind.st_mode)) return kIsFolder;
  return S_ISFIFO(kind.st_mode) ? "a named pipe; `-` reads standard input: `rehearse ... - < PIPE`"
                                : "a device or socket";
}

// All names of one descriptor map to one name.
std::string stream_name(const std::string& path) {
  if (path == "-" || path == "/dev/stdin") return "0";
  return path.substr(path.rfind('/') + 1);
}

// All data until the end; errors name `path`.
std::string read_to_end(int file, const std::string& path, std::size_t most_bytes) {
  std::string text;
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t count = read(file, block.data(), block.size());
    if (count == 0) return text;
    if (count < 0 && errno == EAGAIN) {
      pollfd waiting = {file, POLLIN, 0};
      poll(&waiting, 1, -1);
    } else if (count < 0 && errno != EINTR) {
      fail_to_read(path, reason(errno));
    }
    if (count > 0) text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > most_bytes) fail_of_size(path, most_bytes);
  }
}

// Opened again, so that a file is read from its beginning. Standard input is used directly, as it may be a
// socket.
std::string read_stream(const std::string& path, std::size_t most_bytes) {
  ReadFiles& files = read_files();
  const std::lock_guard lock(files.stream_mutex);
  const std::string name = stream_name(path);
  if (const auto known = files.streams.find(name); known != files.streams.end()) {
    if (known->second.size() <= most_bytes) return known->second;
    fail_of_size(path, most_bytes);
  }
  if (name == "0") return files.streams[name] = read_to_end(STDIN_FILENO, path, most_bytes);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat kind = {};
  if (file.get() < 0 || fstat(file.get(), &kind) != 0) fail_to_read(path, reason(errno));
  std::string text = read_to_end(file.get(), path, most_bytes);
  if (!S_ISREG(kind.st_mode)) files.streams[name] = text;
  return text;
}

// The file's kind is checked before it is opened, as opening some devices has effects. It is checked again
// afterwards, as it may have been replaced. Opening a pipe does not wait for its writer.
std::string read_file(const std::string& path, std::size_t most_bytes) {
  if (const std::string why = why_unreadable(path); !why.empty()) fail_to_read(path, why);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat kind = {};
  if (file.get() < 0 || fstat(file.get(), &kind) != 0) fail_to_read(path, reason(errno));
  if (const std::string why = why_not(kind); !why.empty()) fail_to_read(path, why);
  remember(path);
  return read_to_end(file.get(), path, most_bytes);
}

}  // namespace

bool is_stream(const std::string& path) {
  return path == "-" || path == "/dev/stdin" || path.starts_with("/dev/fd/") ||
         path.starts_with("/proc/self/fd/");
}

bool was_streamed(const std::string& path) {
  ReadFiles& files = read_files();
  const std::lock_guard lock(files.stream_mutex);
  return files.streams.contains(stream_name(path));
}

std::string stem_of(const std::string& file) {
  return is_stream(file) ? "stdin" : std::filesystem::path(file).stem().string();
}

std::filesystem::path folder_of(const std::string& file) {
  return is_stream(file) ? std::filesystem::path() : std::filesystem::path(file).parent_path();
}

std::string why_unreadable(const std::string& path) {
  if (is_stream(path)) return "";
  struct stat kind = {};
  return stat(path.c_str(), &kind) == 0 ? why_not(kind) : reason(errno);
}

bool was_read(const std::string& path) {
  ReadFiles& files = read_files();
  const std::lock_guard lock(files.mutex);
  return files.paths.contains(whole_path(path));
}

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
  try {
    std::string text = is_stream(path) ? read_stream(path, most_bytes) : read_file(path, most_bytes);
    note_read(path, text);
    return text;
  } catch (const InputError&) {
    note_unread(path);
    throw;
  }
}

}  // namespace rehearse
