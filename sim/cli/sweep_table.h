// How does a sweep look on a terminal?
#pragma once

#include <string>

#include "sweep/store.h"

namespace rehearse {

// A line a row: the fields that vary, step time, tokens/s/GPU, MFU, bubble, memory, and why a row has none or
// does not count. The fastest row that fits is marked.
std::string sweep_table(const Store& store, const Grid& grid);

// "[12/96] 3.1 rows/s, 0:27 left", rewritten in place on stderr where that is a terminal.
class Progress {
 public:
  explicit Progress(std::size_t points);
  ~Progress();
  void row_done();

 private:
  std::size_t points_, done_ = 0;
  bool shown_;
  double begin_s_, last_s_ = 0;
};

}  // namespace rehearse
