// Which profile do a user's own nccl-tests logs make?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse::nccl {

struct LogImport {
  std::vector<std::string> files;  // logs, -J JSON, or tables as in calibrate/data/nccl
  std::string cluster;             // where they were run; tables name their own
  std::string into;  // profile to merge into; empty: the cluster's, or one with collectives alone
  std::string op;    // where a log does not say
  int nodes = 0;     // where a log does not list its ranks
  int gpus_per_node = 0;
  std::string name;  // of the profile; empty: the cluster's
};

struct ImportedProfile {
  Json profile;
  std::vector<std::string> notes;  // what was taken, and what is doubtful about it
};

// What was measured replaces older measurements of the same operation on the same ranks and outranks what was
// published; the rest of the profile stays. InputError for logs that cannot be read or do not say enough.
ImportedProfile import_logs(const LogImport& request);

}  // namespace rehearse::nccl
