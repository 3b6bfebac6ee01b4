// What did a run of nccl-tests print?
#pragma once

#include <string>
#include <vector>

#include "cost/nccl/table.h"

namespace rehearse::nccl {

// One run: a log may hold several, one after the other. What the log does not say stays empty or 0.
struct LogRun {
  std::string op;  // as nccl-tests name it
  int ranks = 0;
  int hosts = 0;
  bool wrong_values = false;        // "Out of bounds values : N FAILED"
  std::vector<Measured::Row> rows;  // sizes above 0 in growing order; of equal sizes the median
};

// Text in every form that nccl-tests have printed (with or without the columns redop and root, error or
// #wrong, prefixed by srun or mpirun, amid NCCL_DEBUG lines), or the JSON of -J. Out-of-place times; in-place
// ones where a row has no others. InputError names file and line of a row that cannot be.
std::vector<LogRun> read_log(const std::string& path);

}  // namespace rehearse::nccl
