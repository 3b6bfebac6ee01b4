// Devices, streams and events as CUDA's runtime has them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "allocations.h"
#include "gpu.h"
#include "order.h"
#include "stream.h"

namespace {

using namespace cuda_on_cpu;

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

// CUDA_ON_CPU_GPUS of the machine, one by default, or those of them that CUDA_VISIBLE_DEVICES names.
std::vector<int> visible_gpus() {
  const char *there = std::getenv("CUDA_ON_CPU_GPUS"), *named = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<int> gpus;
  const int count = there == nullptr ? 1 : std::atoi(there);
  if (named == nullptr) {
    for (int gpu = 0; gpu < count; ++gpu) gpus.push_back(gpu);
    return gpus;
  }
  for (const char* at = named; *at != '\0';
       at += std::strcspn(at, ",") + (std::strchr(at, ',') != nullptr ? 1 : 0)) {
    const int gpu = std::atoi(at);
    if (gpu >= count) break;  // devices listed after a missing one do not count
    gpus.push_back(gpu);
  }
  return gpus;
}

bool is_gpu(int device) {
  return device >= 0 && device < static_cast<int>(visible_gpus().size());
}

}  // namespace

cudaError_t cuda_on_cpu::result(cudaError_t error) {
  if (is_on_a_stream()) {
    std::fprintf(stderr, "CUDA on the CPU: a call on the host calls CUDA, which would lock up\n");
    std::abort();
  }
  if (error != cudaSuccess) last_error = error;
  return error;
}

int cuda_on_cpu::gpu_of_machine() {
  return visible_gpus().at(static_cast<std::size_t>(current_device));
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() {
  return last_error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(visible_gpus().size());
  return result(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return result(cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (!is_gpu(device)) return result(cudaErrorInvalidDevice);
  current_device = device;
  return result(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!is_gpu(device)) return result(cudaErrorInvalidDevice);
  *properties = {"threads that stand for an H100", device_bytes(), kMultiprocessors, 50 << 20};
  return result(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr /*attribute*/, int device) {
  *value = kMaxSharedBytes;
  return result(is_gpu(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return result(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return result(cudaSuccess);
}

// Whoever wants one that blocks on the default stream does not get it.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return result(cudaErrorInvalidValue);
  *stream = make_stream();
  return result(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  stream->end();
  return result(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return result(stream_of(stream).idle() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (event->last) stream_of(stream).put([moment = event->last] { moment->wait(); });
  return result(cudaSuccess);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* data) {
  stream_of(stream).put([call, data] { call(data); });
  return result(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return result(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  const Unseen unseen;
  delete event;
  return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  {
    const Unseen unseen;  // who drops the last of a moment need not know when it was
    event->last = std::make_shared<Moment>();
  }
  stream_of(stream).put([moment = event->last] { moment->happen(); });
  return result(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  return result(!event->last || event->last->happened() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (event->last) event->last->wait();
  return result(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (begin == nullptr || end == nullptr || !begin->last || !end->last)
    return result(cudaErrorInvalidResourceHandle);
  if (!begin->last->happened() || !end->last->happened()) return result(cudaErrorNotReady);
  *milliseconds = static_cast<float>(1e3 * (end->last->seconds() - begin->last->seconds()));
  return result(cudaSuccess);
}
