// A GPU: memory, streams, and its properties.
#include <cublasLt.h>

#include <cstdlib>

#include "kernels/cuda/check.h"
#include "kernels/cuda/fused_attention.h"
#include "kernels/cuda/partition.h"
#include "kernels/cuda/stream.h"

namespace rehearse::kernels {

namespace {

using cuda::check;

// "13.0" of 13000.
std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string blas_version() {
  const auto number = static_cast<int>(cublasLtGetVersion());  // 130100 is 13.1.0
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

// Makes GPU `index` current and returns it: libraries initialise on the current device.
int made_current(int index) {
  check(cudaSetDevice(index), "device");
  return index;
}

class CudaDevice : public Device {
 public:
  // All of a GPU, or a partition of it.
  explicit CudaDevice(int index, bool cudnn = true, std::unique_ptr<cuda::Partition> partition = nullptr)
      : index_(made_current(index)),
        partition_(std::move(partition)),
        products_(partition_ ? partition_->multiprocessors() : 0),
        fused_attention_(cudnn ? cuda::open_fused_attention(partition_.get()) : nullptr) {
    check(cudaGetDeviceProperties(&properties_, index_), "properties");
  }

  DeviceFacts facts() const override {
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "driver version");
    check(cudaRuntimeGetVersion(&runtime), "version");
    std::vector<std::string> libraries = {"driver for CUDA " + version(driver), "CUDA " + version(runtime),
                                          "cuBLASLt " + blas_version()};
    if (fused_attention_) libraries.push_back("cuDNN " + cuda::cudnn_version());
    return {"cuda",
            properties_.name,
            std::move(libraries),
            partition_ ? partition_->multiprocessors() : properties_.multiProcessorCount,
            static_cast<double>(properties_.l2CacheSize),
            static_cast<double>(properties_.totalGlobalMem)};
  }

  void* allocate(std::size_t bytes, Place place) override {
    check(cudaSetDevice(index_), "device");
    void* memory = nullptr;
    const std::size_t some = bytes == 0 ? 1 : bytes;
    const cudaError_t result =
        place == Place::host ? cudaMallocHost(&memory, some) : cudaMalloc(&memory, some);
    const std::string size = std::to_string(bytes) + " bytes of memory";
    cuda::check_memory(
        result, place == Place::host ? "the host can pin no " + size : "the GPU has no " + size + " left");
    return memory;
  }

  void release(void* memory, Place place) override {
    cudaSetDevice(index_);
    if (place == Place::host) {
      cudaFreeHost(memory);
    } else {
      cudaFree(memory);
    }
  }

  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<cuda::CudaStream>(index_, products_, fused_attention_.get(),
                                              partition_ ? partition_->make_stream() : nullptr);
  }

  double clock_hz() override { return cuda::clock_hz(index_); }

  std::int64_t cudnn_calls() const override { return fused_attention_ ? fused_attention_->calls() : 0; }

 private:
  int index_;  // first: later members are made on this device
  std::unique_ptr<cuda::Partition> partition_;
  cudaDeviceProp properties_ = {};
  cuda::Products products_;
  std::unique_ptr<cuda::FusedAttention> fused_attention_;  // not in every build
};

void require_gpu(int index) {
  const int count = count_gpus();
  if (index < 0 || index >= count) {
    throw DeviceMissing("there is no GPU " + std::to_string(index) + ": this machine has " +
                        std::to_string(count));
  }
}

}  // namespace

int count_gpus() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaErrorNoDevice || result == cudaErrorInsufficientDriver ||
      (result == cudaSuccess && count == 0)) {
    cudaGetLastError();
    throw DeviceMissing(std::string("there is no GPU: ") + cudaGetErrorString(result));
  }
  check(result, "count of GPUs");
  return count;
}

std::unique_ptr<Device> open_cuda(int index, bool cudnn) {
  require_gpu(index);
  return std::make_unique<CudaDevice>(index, cudnn);
}

std::vector<std::unique_ptr<Device>> open_cuda_partitions(int index, int count) {
  // Sets the maximum number of hardware queues, which CUDA reads at start. With the usual eight, streams of
  // different partitions would share queues and wait for each other.
  if (count > 1) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  require_gpu(index);
  std::vector<std::unique_ptr<Device>> devices;
  for (std::unique_ptr<cuda::Partition>& partition : cuda::divide(index, count))
    devices.push_back(std::make_unique<CudaDevice>(index, true, std::move(partition)));
  return devices;
}

}  // namespace rehearse::kernels
