// Which results did a run of nccl-tests print?
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "cost/nccl/table.h"

namespace rehearse::nccl {

// Bounds of busbw / algbw over the rows of a run, from the digits that the log prints. The ratio determines
// the number of ranks (nccl-tests, doc/PERFORMANCE.md).
struct BusRatio {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool known() const { return least <= most && most < std::numeric_limits<double>::infinity(); }
  bool contradicts_itself() const { return least > most; }
  double middle() const { return (least + most) / 2; }
  // The error of each number is half a unit of its last printed digit.
  void narrow(double algbw, double algbw_off, double busbw, double busbw_off);
};

// One run; a log may contain several in sequence. Facts absent from the log are empty or 0.
struct LogRun {
  std::string op;  // as nccl-tests name it
  std::string place;  // "file:line" of its table
  int ranks = 0;      // lines "Rank N ..."
  int hosts = 0;
  int last_rank = -1;  // the highest number among them
  int splits = 0;      // groups that ran at once (NCCL_TESTS_SPLIT)
  bool rank_twice = false;
  std::vector<std::string> gpus;  // names of the devices, each once
  BusRatio ratio;
  bool wrong_values = false;        // "Out of bounds values : N FAILED"
  std::vector<Measured::Row> rows;  // sizes above 0 in growing order; of equal sizes the median
  std::vector<std::string> notes;   // rows that are cut
};

// Reads text in every form that nccl-tests have printed, or the JSON of -J. Forms: with or without the
// columns redop and root, error or #wrong, any launcher's prefix, NCCL_DEBUG lines between. Uses out-of-place
// times, or in-place ones where a row has no others. A truncated row is omitted with a note. InputError names
// file and line of an impossible row.
std::vector<LogRun> read_log(const std::string& path);

}  // namespace rehearse::nccl
