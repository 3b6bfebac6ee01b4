// How fast does the GPU's clock run just now?
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

// Cycles that a multiprocessor counts while the global timer, in nanoseconds, moves by `nanoseconds`.
__global__ void count_cycles(long long nanoseconds, double* hertz) {
  long long begin_ns, now_ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns));
  const long long begin = clock64();
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now_ns));
  } while (now_ns - begin_ns < nanoseconds);
  *hertz = static_cast<double>(clock64() - begin) / (1e-9 * static_cast<double>(now_ns - begin_ns));
}

}  // namespace

double clock_hz(int device) {
  constexpr long long kNanoseconds = 20'000'000;  // the timer moves in steps of up to a microsecond
  check(cudaSetDevice(device), "device");
  double* on_device = nullptr;
  check(cudaMalloc(&on_device, sizeof(double)), "memory");
  count_cycles<<<1, 1>>>(kNanoseconds, on_device);
  double hertz = 0;
  const cudaError_t result = cudaMemcpy(&hertz, on_device, sizeof hertz, cudaMemcpyDeviceToHost);
  cudaFree(on_device);
  check(result, "clock");
  return hertz;
}

}  // namespace rehearse::kernels::cuda
