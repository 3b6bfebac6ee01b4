#include "cli/own_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "cli/say.h"
#include "cli/swept.h"

namespace rehearse {

namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  return (cache && *cache ? fs::path(cache)
          : home && *home ? fs::path(home) / ".cache"
                          : fs::temp_directory_path()) /
         "rehearse";
}

[[noreturn]] void cannot_keep(const std::string& path, const std::string& why) {
  throw std::runtime_error(fmt::format("cannot keep rows in {}: {} (--store FILE: elsewhere)", path, why));
}

}  // namespace

OwnStore::OwnStore(const Json& identity, const Shard& shard, bool resume) {
  const fs::path folder = cache_folder();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) cannot_keep(folder, error.message());
  const std::string part = shard.count > 1 ? fmt::format("-{}of{}", shard.index, shard.count) : "";
  path_ = folder / fmt::format("sweep-{}{}.db", digest(identity.dump()), part);
  lock_ = open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) cannot_keep(path_, std::strerror(errno));
  if (!resume) {
    if (flock(lock_, LOCK_EX | LOCK_NB) == 0) {
      fs::remove(path_ + "-journal");
      fs::remove(path_);
    } else {
      say(stderr, "another process runs this sweep; both keep their rows in {}\n", path_);
    }
  }
  flock(lock_, LOCK_SH);
}

OwnStore::~OwnStore() {
  close(lock_);
}

}  // namespace rehearse
