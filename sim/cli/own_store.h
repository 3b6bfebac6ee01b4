// Where are the rows of a sweep kept by default? In the user's cache, under a name derived from the swept
// values, so that --resume finds them.
#pragma once

#include <string>

#include "base/json_reader.h"
#include "sweep/shard.h"

namespace rehearse {

// During its lifetime, other processes know that this process uses the file.
class OwnStore {
 public:
  // Starts with no rows, unless `resume` is set or another process uses the existing rows.
  OwnStore(const Json& identity, const Shard& shard, bool resume);
  ~OwnStore();
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace rehearse
