// A GPU's SMs divided among ranks.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

namespace rehearse::kernels::cuda {

// Some SMs of a GPU: a green context of the driver (CUDA 12.5 on). All partitions share one address space.
class Partition {
 public:
  Partition(int device, CUdevResource multiprocessors);
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;
  ~Partition();

  int multiprocessors() const { return multiprocessors_; }
  cudaStream_t make_stream() const;  // its kernels run on these SMs alone
  CUcontext context() const;         // for libraries that use the current context

 private:
  CUgreenCtx context_ = nullptr;
  int multiprocessors_ = 0;
};

// While it exists, the partition (if not null) is this thread's current context. DeviceError when that fails.
class PartitionInUse {
 public:
  explicit PartitionInUse(const Partition* partition);
  PartitionInUse(const PartitionInUse&) = delete;
  PartitionInUse& operator=(const PartitionInUse&) = delete;
  ~PartitionInUse();

 private:
  bool in_use_;
};

// `count` equal partitions, as large as the GPU's granularity allows (8 SMs on Hopper). DeviceMissing when
// the GPU cannot be divided so, or the driver lacks green contexts.
std::vector<std::unique_ptr<Partition>> divide(int device, int count);

}  // namespace rehearse::kernels::cuda
