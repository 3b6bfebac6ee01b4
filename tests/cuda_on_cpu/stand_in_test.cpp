// Does the emulation behave like CUDA, above all where kernels or their streams are wrong?
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace {

class CudaOnCpu : public testing::Test {
 protected:
  CudaOnCpu() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~CudaOnCpu() override { cudaStreamDestroy(stream_); }

  cudaLaunchConfig_t grid(dim3 blocks, dim3 threads, std::size_t shared_bytes = 0) const {
    return {blocks, threads, shared_bytes, stream_};
  }
  template <typename T>
  T* memory(std::size_t count) {
    T* made = nullptr;
    EXPECT_EQ(cudaMalloc(&made, count * sizeof(T)), cudaSuccess);
    return made;
  }
  template <typename T>
  std::vector<T> read(const T* from, std::size_t count) {
    std::vector<T> to(count);
    EXPECT_EQ(cudaMemcpyAsync(to.data(), from, count * sizeof(T), cudaMemcpyDefault, stream_), cudaSuccess);
    return to;
  }

  cudaStream_t stream_ = nullptr;
};

void nothing() {}

TEST_F(CudaOnCpu, RefusesWhatAGpuWould) {
  const auto refused = [&](const cudaLaunchConfig_t& config) {
    const bool at_once = cudaLaunchKernelEx(&config, nothing) == cudaErrorInvalidConfiguration;
    return at_once && cudaGetLastError() == cudaErrorInvalidConfiguration;
  };
  EXPECT_TRUE(refused(grid(1, 1025)));
  EXPECT_TRUE(refused(grid(0, 32)));
  EXPECT_TRUE(refused(grid(dim3(1, 65536), 32)));
  EXPECT_TRUE(refused(grid(1, 32, 100 << 10)));
  EXPECT_FALSE(refused(grid(dim3(1, 65535), 1024, 48 << 10)));
  EXPECT_EQ(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10),
            cudaSuccess);
  EXPECT_FALSE(refused(grid(1, 32, 100 << 10)));
}

TEST_F(CudaOnCpu, GivesMemoryThatHoldsNoNumbers) {
  float* const fresh = memory<float>(1);
  EXPECT_TRUE(std::isnan(read(fresh, 1).front()));
  cudaFree(fresh);
}

void reverse(int* values) {
  __shared__ int kept[64];
  kept[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = 100 * __shfl_xor_sync(0xffffffffU, kept[63 - threadIdx.x], 1) +
                        (__ballot_sync(0xffffffffU, threadIdx.x % 2 == 0) == 0x55555555U ? 1 : 0);
}

TEST_F(CudaOnCpu, LetsThreadsOfABlockMeet) {
  int* const values = memory<int>(64);
  std::vector<int> numbers(64);
  for (int i = 0; i < 64; ++i) numbers[static_cast<std::size_t>(i)] = i;
  cudaMemcpyAsync(values, numbers.data(), 64 * sizeof(int), cudaMemcpyDefault, stream_);
  const cudaLaunchConfig_t config = grid(1, 64);
  EXPECT_EQ(cudaLaunchKernelEx(&config, reverse, values), cudaSuccess);
  const std::vector<int> found = read(values, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(found[static_cast<std::size_t>(i)], 100 * (63 - (i ^ 1)) + 1);
  cudaFree(values);
}

void some_leave() {
  if (threadIdx.x > 40) return;
  __syncthreads();
}

TEST_F(CudaOnCpu, TellsWhenThreadsMissABarrier) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(
      {
        const cudaLaunchConfig_t config = grid(1, 64);
        cudaLaunchKernelEx(&config, some_leave);
        std::this_thread::sleep_for(std::chrono::seconds(10));
      },
      "is not at the barrier of the others");
}

void wait_a_moment() {
  const long long begin = clock64();
  while (clock64() - begin < 20'000'000) {
  }
}

// An unnecessary query leaves an error for the next check.
TEST_F(CudaOnCpu, RemembersThatAStreamWasNotReady) {
  const cudaLaunchConfig_t config = grid(1, 1);
  EXPECT_EQ(cudaLaunchKernelEx(&config, wait_a_moment), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
