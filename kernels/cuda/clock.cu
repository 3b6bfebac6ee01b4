// What is the current clock rate of the GPU?
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

__global__ void wait_for_cycles(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

class Moment {
 public:
  Moment() { check(cudaEventCreate(&event_), "event"); }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;
  ~Moment() { cudaEventDestroy(event_); }
  void is_now() const { check(cudaEventRecord(event_), "record"); }
  double seconds_since(const Moment& earlier) const {
    check(cudaEventSynchronize(event_), "clock");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "time between events");
    return 1e-3 * double{milliseconds};
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double clock_hz(int device) {
  constexpr long long kCycles = 2'000'000;  // a millisecond: long compared to a launch, short compared to clock changes
  check(cudaSetDevice(device), "device");
  launch(nullptr, "clock", wait_for_cycles, {1, 1}, 0LL);  // loads the kernel
  const Moment begin, end;
  begin.is_now();
  launch(nullptr, "clock", wait_for_cycles, {1, 1}, kCycles);
  end.is_now();
  return static_cast<double>(kCycles) / end.seconds_since(begin);
}

}  // namespace rehearse::kernels::cuda
