#include "cli/own_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/read_record.h"
#include "base/say.h"

namespace rehearse {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_keep(const std::string& path, const std::string& why) {
  throw std::runtime_error(
      fmt::format("cannot keep rows in {}: {} (--store FILE sets another file)", path, why));
}

// In a folder that everybody can write to, another user may have created a file with our name.
void make_private(const fs::path& folder) {
  mkdir(folder.c_str(), S_IRWXU);
  struct stat made = {};
  if (lstat(folder.c_str(), &made) != 0) cannot_keep(folder, std::strerror(errno));
  if (!S_ISDIR(made.st_mode)) cannot_keep(folder, "it is a link or a file, not a folder");
  if (made.st_uid != geteuid()) cannot_keep(folder, "it belongs to another user");
  if ((made.st_mode & (S_IWGRP | S_IWOTH)) != 0) cannot_keep(folder, "others may write to it");
}

// The folder; it is created.
fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if ((cache == nullptr || *cache == '\0') && (home == nullptr || *home == '\0')) {
    const fs::path folder = fs::temp_directory_path() / "rehearse";
    make_private(folder);
    return folder;
  }
  const fs::path folder =
      (cache != nullptr && *cache != '\0' ? fs::path(cache) : fs::path(home) / ".cache") / "rehearse";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) cannot_keep(folder, error.message());
  return folder;
}

}  // namespace

OwnStore::OwnStore(const Json& identity, const Shard& shard, bool resume) {
  const fs::path folder = cache_folder();
  const std::string part = shard.count > 1 ? fmt::format("-{}of{}", shard.index, shard.count) : "";
  path_ = folder / fmt::format("sweep-{}{}.db", digest(identity.dump()), part);
  lock_ = open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) cannot_keep(path_, std::strerror(errno));
  if (!resume) {
    if (flock(lock_, LOCK_EX | LOCK_NB) == 0) {
      fs::remove(path_ + "-journal");
      fs::remove(path_);
    } else {
      say(stderr, "another process runs this sweep; both store their rows in {}\n", path_);
    }
  }
  flock(lock_, LOCK_SH);
}

OwnStore::~OwnStore() {
  close(lock_);
}

}  // namespace rehearse
