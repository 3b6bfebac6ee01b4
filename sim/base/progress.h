// How is the progress of long work shown, with rows and without?
#pragma once

#include <cstddef>
#include <string>
#include <thread>

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

// "simulating 4,000,000 microbatches, 0:12", from the third second on, on stderr where that is a terminal;
// cleared with its scope.
class Activity {
 public:
  explicit Activity(std::string what);

 private:
  std::jthread clock_;
};

}  // namespace rehearse
