// How does a stream of a GPU run a call on its host?
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <memory>
#include <mutex>

#include "kernels/call.h"

namespace rehearse::kernels::cuda {

// By the CPU's kernels, on each GPU's share of the cores of its machine, or as many of them as the process
// has.
class HostCalls {
 public:
  // Runs when all that was put on the stream before has ended; what is put after it waits.
  void put(const Call& call, cudaStream_t stream);
  // What the first that failed since the last time has thrown, or nothing.
  std::exception_ptr take_failure();

 private:
  struct Failure {
    std::mutex mutex;
    std::exception_ptr first;
  };
  struct Item {
    Call call;
    std::shared_ptr<Failure> failure;
    int threads = 1;
  };
  static void CUDART_CB run(void* item);

  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
};

}  // namespace rehearse::kernels::cuda
