// A CPU with slow copies to and from its emulated host memory, and with memory that is NaN at first.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/cpu/stream.h"
#include "kernels/device.h"

namespace rehearse {

// The memory of a host: where each piece of it begins and how long it is.
class HostMemory {
 public:
  void add(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[static_cast<const std::byte*>(memory)] = bytes;
  }
  void remove(void* memory) {
    const std::lock_guard lock(mutex_);
    sizes_.erase(static_cast<const std::byte*>(memory));
  }
  bool holds(const void* memory) const {
    const std::lock_guard lock(mutex_);
    const auto* byte = static_cast<const std::byte*>(memory);
    const auto after = sizes_.upper_bound(byte);
    if (after == sizes_.begin()) return false;
    const auto& [first, bytes] = *std::prev(after);
    return byte < first + bytes;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::size_t> sizes_;
};

class SlowStream : public kernels::cpu::CpuStream {
 public:
  explicit SlowStream(const HostMemory& host) : CpuStream(1), host_(host) {}
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (host_.holds(to) || host_.holds(from))
      put([] { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
    CpuStream::copy(to, from, bytes);
  }

 private:
  const HostMemory& host_;
};

class DeviceOfSlowCopies : public kernels::Device {
 public:
  kernels::DeviceFacts facts() const override { return cpu_->facts(); }
  void* allocate(std::size_t bytes, kernels::Place place) override {
    void* memory = cpu_->allocate(bytes, place);
    std::memset(memory, 0xff, bytes);  // no number in any type
    if (place == kernels::Place::host) host_.add(memory, bytes);
    return memory;
  }
  void release(void* memory, kernels::Place place) override {
    if (place == kernels::Place::host) host_.remove(memory);
    cpu_->release(memory, place);
  }
  std::unique_ptr<kernels::Stream> make_stream() override { return std::make_unique<SlowStream>(host_); }
  double clock_hz() override { return cpu_->clock_hz(); }

 private:
  std::unique_ptr<kernels::Device> cpu_ = kernels::open_cpu();
  HostMemory host_;
};

}  // namespace rehearse
