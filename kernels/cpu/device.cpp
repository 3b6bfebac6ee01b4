#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "kernels/cpu/blas.h"
#include "kernels/cpu/stream.h"

namespace rehearse::kernels {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr double kUnknownCache = 32e6;  // where the system does not report it

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

// Size of the first core's last-level cache, as Linux reports it ("32768K"). sysconf may count every cache of
// the socket instead.
double last_level_cache() {
  double bytes = 0;
  for (int level = 0; level < 8; ++level) {
    std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(level) + "/size");
    double kilobytes = 0;
    if (in >> kilobytes) bytes = std::max(bytes, 1024 * kilobytes);
  }
  return bytes > 0 ? bytes : kUnknownCache;
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}

  DeviceFacts facts() const override {
    const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
    return {"cpu",    processor(),        {cpu::blas_name()},
            threads_, last_level_cache(), pages * static_cast<double>(sysconf(_SC_PAGE_SIZE))};
  }

  void* allocate(std::size_t bytes, Place /*place*/) override {
    const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, whole == 0 ? kAlignment : whole);
    if (memory == nullptr) {
      throw OutOfMemory("the machine has no " + std::to_string(bytes) + " bytes of memory left");
    }
    return memory;
  }

  void release(void* memory, Place /*place*/) override { std::free(memory); }

  std::unique_ptr<Stream> make_stream() override { return std::make_unique<cpu::CpuStream>(threads_); }

  double clock_hz() override;

 private:
  int threads_;
};

// Measured with a chain of dependent multiplications. imul has a latency of three cycles on every x86-64
// since 2008 (Fog, Instruction tables). 0 elsewhere: unknown.
double CpuDevice::clock_hz() {
#ifdef __x86_64__
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 5000, kChain = 100;
  std::uint64_t x = 3;
  const auto chain = [&x] {
    for (int i = 0; i < kRounds; ++i) asm volatile(".rept 100\n imul %0, %0\n .endr" : "+r"(x));
  };
  chain();
  double best = 0;
  for (int trial = 0; trial < 3; ++trial) {
    const auto begin = Clock::now();
    chain();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 3.0 * kRounds * kChain / seconds);
  }
  return best;
#else
  return 0;
#endif
}

bool runs_here() {
#if defined(__x86_64__) && defined(__AVX2__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

}  // namespace

std::unique_ptr<Device> open_cpu(int threads) {
  if (!runs_here()) {
    throw DeviceMissing(
        "the CPU kernels were built for AVX2 and FMA, which this processor lacks; configure "
        "with -DREHEARSE_CPU_ARCH=x86-64");
  }
  if (threads < 1) throw DeviceError("a CPU device has at least one thread");
  cpu::blas_name();  // loaded before ranks start
  return std::make_unique<CpuDevice>(threads);
}

}  // namespace rehearse::kernels
