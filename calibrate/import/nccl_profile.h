// Which profile do a user's own nccl-tests logs make?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "cost/nccl/table.h"

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

// A run of a log as a table, and where it was read.
struct LoggedTable {
  Table table;
  std::string place;  // "file:line"
};

// Is it a log (text, or the JSON of -J) rather than a table?
bool is_log(const std::string& path);

// The runs of one log. Notes: what was concluded, what is doubtful or left out. InputError for a log that
// cannot be read, does not say enough or contradicts itself or the request.
std::vector<LoggedTable> tables_of_log(const std::string& path, const LogImport& request,
                                       std::vector<std::string>& notes);

struct ImportedProfile {
  Json profile;
  std::vector<std::string> notes;  // what was taken, and what is doubtful about it
};

// What was measured replaces older measurements of the same operation on the same ranks and outranks what was
// published; the rest of the profile stays. Of runs of one group that differ by a lot the last is taken, with
// a note; else their median. InputError for logs that cannot be read or do not say enough.
ImportedProfile import_logs(const LogImport& request);

}  // namespace rehearse::nccl
