#include "kernels/cuda/stream.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "kernels/cuda/check.h"

namespace rehearse::kernels::cuda {

namespace {

// NVIDIA's recommendation for Hopper (cuBLAS library documentation, cublasSetWorkspace).
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

// Whether host memory is not pinned by CUDA.
bool is_pageable(const void* memory) {
  cudaPointerAttributes attributes = {};
  check(cudaPointerGetAttributes(&attributes, memory), "place of memory");
  return attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace

void Watch::add(std::weak_ptr<std::function<void()>> watcher) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const auto& other) {
    return !other.owner_before(watcher) && !watcher.owner_before(other);
  };
  if (std::none_of(watchers_.begin(), watchers_.end(), same)) watchers_.push_back(std::move(watcher));
}

void Watch::ask() {
  std::vector<std::shared_ptr<std::function<void()>>> present;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
    for (const auto& watcher : watchers_) present.push_back(watcher.lock());
  }
  for (const auto& watcher : present) {
    if (watcher) (*watcher)();
  }
}

void Watch::wait(const std::function<cudaError_t()>& ready) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSpin(2000), kPause(200);
  const auto begin = Clock::now();
  cudaError_t state = ready();
  for (; state == cudaErrorNotReady; state = ready()) {
    cudaGetLastError();  // clears it, or a library that checks would take it for its own failure
    if (Clock::now() - begin < kSpin) continue;
    ask();
    std::this_thread::sleep_for(kPause);
  }
  check(state, "wait");
}

CudaEvent::CudaEvent(cudaStream_t stream, std::shared_ptr<Watch> watch, std::exception_ptr failure)
    : failure_(std::move(failure)), watch_(std::move(watch)) {
  check(cudaEventCreate(&event_), "event");
  const cudaError_t recorded = cudaEventRecord(event_, stream);
  if (recorded == cudaSuccess) return;
  cudaEventDestroy(event_);
  check(recorded, "record");
}

CudaEvent::~CudaEvent() {
  cudaEventDestroy(event_);
}

void CudaEvent::wait() {
  watch_->wait([event = get()] { return cudaEventQuery(event); });
}

cudaEvent_t CudaEvent::get() const {
  if (failure_) std::rethrow_exception(failure_);
  return event_;
}

double CudaEvent::seconds_since(Event& earlier) {
  auto& first = dynamic_cast<CudaEvent&>(earlier);
  first.wait();
  wait();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first.event_, event_), "time between events");
  return 1e-3 * double{milliseconds};
}

CudaStream::CudaStream(int device, Products& products, FusedAttention* fused_attention, cudaStream_t stream)
    : device_(device) {
  check(cudaSetDevice(device), "device");
  context_.products = &products;
  context_.fused_attention = fused_attention;
  context_.scratch = &scratch_;
  context_.workspace_bytes = kWorkspaceBytes;
  check_memory(cudaMalloc(&context_.workspace, kWorkspaceBytes),
               "the GPU has no " + std::to_string(kWorkspaceBytes) + " bytes of workspace left");
  context_.stream = stream;
  if (stream != nullptr) return;
  const cudaError_t made = cudaStreamCreateWithFlags(&context_.stream, cudaStreamNonBlocking);
  if (made == cudaSuccess) return;
  cudaFree(context_.workspace);
  check(made, "stream");
}

CudaStream::~CudaStream() {
  cudaSetDevice(device_);
  scratch_.release(context_.stream);
  cudaStreamDestroy(context_.stream);
  cudaFree(context_.workspace);
}

void CudaStream::put(const std::function<void(cudaStream_t)>& action) {
  if (failure_) return;
  try {
    check(cudaSetDevice(device_), "device");
    action(context_.stream);
  } catch (const DeviceError&) {
    failure_ = std::current_exception();
  }
}

void CudaStream::launch(const Call& call) {
  put([&](cudaStream_t) { std::visit([this](const auto& which) { run(context_, which); }, call); });
}

void CudaStream::launch_on_host(const Call& call) {
  put([&](cudaStream_t stream) { host_calls_.put(call, stream); });
}

void CudaStream::copy(void* to, const void* from, std::size_t bytes) {
  put([&](cudaStream_t stream) {
    // CUDA blocks until it has filled such memory. It would block forever where an earlier collective hangs.
    if (bytes > 0 && is_pageable(to)) watch_->wait([stream] { return cudaStreamQuery(stream); });
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copy");
  });
}

void CudaStream::clear(void* memory, std::size_t bytes) {
  put([&](cudaStream_t stream) { check(cudaMemsetAsync(memory, 0, bytes, stream), "clear"); });
}

std::shared_ptr<Event> CudaStream::record() {
  check(cudaSetDevice(device_), "device");
  return std::make_shared<CudaEvent>(context_.stream, watch_, failure_);
}

void CudaStream::wait(const std::shared_ptr<Event>& event) {
  put([&](cudaStream_t stream) {
    const cudaEvent_t other = dynamic_cast<CudaEvent&>(*event).get();
    check(cudaStreamWaitEvent(stream, other, 0), "wait for an event");
  });
}

void CudaStream::synchronize() {
  std::exception_ptr failure = std::exchange(failure_, nullptr);
  watch_->wait([this] { return cudaStreamQuery(context_.stream); });
  const std::exception_ptr at_host = host_calls_.take_failure();
  if (!failure) failure = at_host;
  if (failure) std::rethrow_exception(failure);
}

bool CudaStream::hold(const Hold& hold) {
  put([&](cudaStream_t stream) {
    auto turn = std::make_unique<std::function<void()>>(hold.turn());
    const auto run = [](void* given) {
      const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(given));
      (*own)();
    };
    check(cudaLaunchHostFunc(stream, run, turn.get()), "hold");
    turn.release();
  });
  return true;
}

CudaStream& as_cuda(Stream& stream) {
  auto* cuda = dynamic_cast<CudaStream*>(&stream);
  if (cuda == nullptr) throw DeviceError("messages between GPUs need a stream of a GPU");
  return *cuda;
}

}  // namespace rehearse::kernels::cuda
