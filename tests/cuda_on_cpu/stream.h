// In which order does work on streams run? Each stream is a thread that runs one task after another.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "cuda_runtime_api.h"

// A stream's thread outlives its handle until all that was put there has run.
struct CUstream_st {
 public:
  static std::shared_ptr<CUstream_st> start();

  void put(std::function<void()> task);
  void end();  // when all has run
  bool ending();
  // Whether all work has run. Completed work is ordered before this thread's next actions.
  bool idle();
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<std::function<void()>>> tasks_;  // the first may be running
  bool ending_ = false;
  std::thread thread_;
};

namespace cuda_on_cpu {

// A place in a stream that it has come to or not.
class Moment {
 public:
  void happen();
  bool happened();
  void wait();
  double seconds() const { return seconds_; }  // once it has happened

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
  double seconds_ = 0;
};

// The stream behind a handle; nullptr stands for the default one, which all devices share here.
CUstream_st& stream_of(cudaStream_t handle);
cudaStream_t make_stream();
void drain_all();
bool is_on_a_stream();  // this thread
double now_s();

// Every function of the runtime returns through this; cudaGetLastError() reports the error again.
cudaError_t result(cudaError_t error);

}  // namespace cuda_on_cpu

struct CUevent_st {
  std::shared_ptr<cuda_on_cpu::Moment> last;  // recorded
};
