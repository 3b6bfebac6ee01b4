// Where are the rows of a sweep kept when the user does not say? In the user's cache, under a name that
// follows from what is swept, so that --resume finds them.
#pragma once

#include <string>

#include "base/json_reader.h"
#include "sweep/shard.h"

namespace rehearse {

// As long as it lives, others know that this process uses the file.
class OwnStore {
 public:
  // Begins afresh where neither `resume` nor another process wants the rows that are there.
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
