// A GPU's multiprocessors divided among ranks.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

namespace rehearse::kernels::cuda {

// Some multiprocessors of a GPU: a green context of its driver (CUDA 12.5 on), in the address space of all.
class Partition {
 public:
  Partition(int device, CUdevResource multiprocessors);
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;
  ~Partition();

  int multiprocessors() const { return multiprocessors_; }
  cudaStream_t make_stream() const;  // whose kernels run on them alone
  CUcontext context() const;         // for libraries that look at the current one

 private:
  CUgreenCtx context_ = nullptr;
  int multiprocessors_ = 0;
};

// While it lives the partition, where there is one, is this thread's current context. DeviceError when it
// cannot be.
class PartitionInUse {
 public:
  explicit PartitionInUse(const Partition* partition);
  PartitionInUse(const PartitionInUse&) = delete;
  PartitionInUse& operator=(const PartitionInUse&) = delete;
  ~PartitionInUse();

 private:
  bool in_use_;
};

// `count` equal ones, as large as the GPU's granularity allows (8 multiprocessors on Hopper). DeviceMissing
// when it cannot be divided so, or the driver knows no green contexts.
std::vector<std::unique_ptr<Partition>> divide(int device, int count);

}  // namespace rehearse::kernels::cuda
