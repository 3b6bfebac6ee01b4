// How far is work that is done row by row?
#pragma once

#include <cstddef>

namespace rehearse {

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
