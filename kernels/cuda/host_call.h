// How does a stream of a GPU run a call on its host?
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <memory>
#include <mutex>

#include "kernels/call.h"

namespace rehearse::kernels::cuda {

// Uses the CPU's kernels. Threads: each GPU's share of the cores of its machine, at most those of the
// process.
class HostCalls {
 public:
  // Runs after all earlier work of the stream has ended; later work waits for it.
  void put(const Call& call, cudaStream_t stream);
  // The first exception since the last call, or nothing.
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
