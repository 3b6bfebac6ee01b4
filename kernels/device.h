// Which devices can run kernels? They have memory, streams that run calls in order, and events between
// streams. This is CUDA's model; the CPU implements it with one thread a stream.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/call.h"
#include "kernels/hold.h"

namespace rehearse::kernels {

// An error on a device or between ranks.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class OutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// The user's mistake: the started processes do not fit together.
class Refused : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

class DeviceMissing : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// A point in a stream, made by Stream::record(). It has happened when all earlier work has ended.
class Event {
 public:
  virtual ~Event() = default;
  // Blocks the caller. Throws when earlier work has failed.
  virtual void wait() = 0;
  // From `earlier`, of the same device, to this one; both must have happened.
  virtual double seconds_since(Event& earlier) = 0;
};

// Calls run in the order in which they were put. All functions return at once. The next synchronize() throws
// a call's failure; later calls do not run.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void launch(const Call& call) = 0;
  virtual void launch_on_host(const Call& call) = 0;  // on the host, in stream order; Place::host
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  // to, from or on the device
  virtual void clear(void* memory, std::size_t bytes) = 0;               // to zero
  virtual std::shared_ptr<Event> record() = 0;
  virtual void wait(const std::shared_ptr<Event>& event) = 0;  // of any stream of the device
  virtual void synchronize() = 0;
  // Later work begins when the hold ends. Returns false, and holds nothing, where launching needs the same
  // core that runs the work.
  virtual bool hold(const Hold& hold) = 0;
};

// The device's description in a profile.
struct DeviceFacts {
  std::string kind;                    // "cpu", "cuda"
  std::string name;                    // of the processor
  std::vector<std::string> libraries;  // "OpenBLAS 0.3.21 (SkylakeX)", "driver 580.65", ...
  int cores = 0;                       // threads, or multiprocessors
  double cache_bytes = 0;              // last level
  double memory_bytes = 0;
};

// Location of memory: the device, or pinned pages of its host, which the device copies to and from by itself.
// On a CPU both are the same.
enum class Place : std::uint8_t { device, host };

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceFacts facts() const = 0;
  // Aligned to 64 bytes; OutOfMemory when there is no more.
  virtual void* allocate(std::size_t bytes, Place place = Place::device) = 0;
  virtual void release(void* memory, Place place = Place::device) = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual double clock_hz() = 0;  // current clock of the compute units; takes a moment to measure
  virtual std::int64_t cudnn_calls() const { return 0; }  // calls that cuDNN ran so far
};

// Memory that is released by the destructor. The device must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::size_t bytes, Place place = Place::device)
      : device_(&device), memory_(device.allocate(bytes, place)), bytes_(bytes), place_(place) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (memory_ != nullptr) device_->release(memory_, place_);
  }
  void* data() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(place_, other.place_);
  }
  Device* device_ = nullptr;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Place place_ = Place::device;
};

// One core by default; with more `threads`, each kernel is divided over them. 16-bit tensors are widened to
// fp32, and results are rounded.
std::unique_ptr<Device> open_cpu(int threads = 1);

// The number of GPUs that this process sees. DeviceMissing without a driver, a GPU, or a build with
// REHEARSE_CUDA.
int count_gpus();

// GPU number `index`. DeviceMissing without a driver, the GPU, or a build with REHEARSE_CUDA. cuDNN runs
// attention in bf16 and fp16 where the build has it, it takes the call, and `cudnn` allows it.
std::unique_ptr<Device> open_cuda(int index = 0, bool cudnn = true);

// The GPU's SMs in `count` equal parts, each a device of its own. Their kernels run concurrently and share
// memory, its bandwidth and the cache. DeviceMissing too where the GPU cannot be divided so.
std::vector<std::unique_ptr<Device>> open_cuda_partitions(int index, int count);

}  // namespace rehearse::kernels
