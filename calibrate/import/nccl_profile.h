// Which profile results from a user's own nccl-tests logs?
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

// The runs of one log. Notes: conclusions, doubtful points, omissions. InputError for a log that cannot be
// read, has too little information, or contradicts itself or the request.
std::vector<LoggedTable> tables_of_log(const std::string& path, const LogImport& request,
                                       std::vector<std::string>& notes);

struct ImportedProfile {
  Json profile;
  std::vector<std::string> notes;  // what was imported, and doubtful points
};

// New measurements replace older ones of the same operation on the same ranks, and take precedence over
// published ones. The rest of the profile is unchanged. Where runs of one group differ strongly, the last is
// taken, with a note; otherwise their median. InputError for logs that cannot be read or have too little
// information.
ImportedProfile import_logs(const LogImport& request);

}  // namespace rehearse::nccl
