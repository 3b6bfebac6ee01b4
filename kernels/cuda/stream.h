// A stream of a GPU, and the watchers that are asked while a thread waits for it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cuda/host_call.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/scratch.h"
#include "kernels/device.h"

namespace rehearse::kernels::cuda {

// A wait that ends when the GPU hangs in a collective whose other ranks are gone. Every watcher is called
// repeatedly, and throws when it gives up.
class Watch {
 public:
  // Removed when its owner is destroyed.
  void add(std::weak_ptr<std::function<void()>> watcher);
  // Waits until ready() is cudaSuccess; it must return cudaErrorNotReady before.
  void wait(const std::function<cudaError_t()>& ready);

 private:
  void ask();
  std::mutex mutex_;
  std::vector<std::weak_ptr<std::function<void()>>> watchers_;
};

class CudaEvent : public Event {
 public:
  // `failure`: an operation before the event could not be put.
  CudaEvent(cudaStream_t stream, std::shared_ptr<Watch> watch, std::exception_ptr failure);
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override;
  void wait() override;
  double seconds_since(Event& earlier) override;
  // The event to wait for. Throws the failure of an earlier operation.
  cudaEvent_t get() const;

 private:
  cudaEvent_t event_ = nullptr;
  std::exception_ptr failure_;
  std::shared_ptr<Watch> watch_;
};

class CudaStream : public Stream {
 public:
  // Uses `stream`; creates one where it is null.
  CudaStream(int device, Products& products, FusedAttention* fused_attention, cudaStream_t stream = nullptr);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  void launch(const Call& call) override;
  void launch_on_host(const Call& call) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void clear(void* memory, std::size_t bytes) override;
  std::shared_ptr<Event> record() override;
  void wait(const std::shared_ptr<Event>& event) override;
  void synchronize() override;
  bool hold(const Hold& hold) override;

  // Communicators put their operations here; action(stream) issues one.
  void put(const std::function<void(cudaStream_t)>& action);
  Watch& watch() { return *watch_; }
  int device() const { return device_; }

 private:
  int device_;
  Context context_;
  Scratch scratch_;
  std::shared_ptr<Watch> watch_ = std::make_shared<Watch>();
  HostCalls host_calls_;
  std::exception_ptr failure_;
};

// The CUDA stream behind a Stream; DeviceError for another device's.
CudaStream& as_cuda(Stream& stream);

}  // namespace rehearse::kernels::cuda
