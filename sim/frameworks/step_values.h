// Which values shape a step, and which of them did an import read?
#pragma once

#include <set>
#include <string>
#include <vector>

#include "frameworks/imported.h"

namespace rehearse {

struct Coverage {
  std::vector<std::string> read;     // of the file or the command line
  std::vector<std::string> assumed;  // defaults of the framework or of this program
  std::vector<std::string>
      from_file;  // of the network and the plan, be it that the command line replaces them
  std::size_t all() const { return read.size() + assumed.size(); }
};

// Each value once: of the network, the job, the batch, the split and the state. Expert parallelism is one
// where the network has experts.
Coverage coverage_of(const Imported& imported, const SaidOverFile& over);

// "read 14 of the 17 values that shape a step; assumed: vocabulary, GPUs"
std::string in_words(const Coverage& coverage);

}  // namespace rehearse
