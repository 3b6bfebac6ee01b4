// A kernel's time is the device's, however long the host takes to launch it.
#include "calibrate/timing/kernel_timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <thread>

namespace rehearse {
namespace {

constexpr double kKernel = 0.2e-3, kHost = 1e-3;  // seconds of a kernel, and of the host for a launch

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct PacedEvent : kernels::Event {
  void wait() override {}
  double seconds_since(kernels::Event& earlier) override {
    return at - dynamic_cast<PacedEvent&>(earlier).at;
  }
  double at = 0;
};

// Kernels one after the other, none before it is launched; with `holds`, none before the stream is waited
// for.
class PacedStream : public kernels::Stream {
 public:
  explicit PacedStream(bool holds) : holds_(holds) {}
  void launch(const kernels::Call& /*call*/) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(kHost));
    put([this] { free_at_ = std::max(free_at_, now()) + kKernel; });
  }
  void launch_on_host(const kernels::Call& call) override { launch(call); }
  void copy(void*, const void*, std::size_t) override {}
  void clear(void*, std::size_t) override {}
  std::shared_ptr<kernels::Event> record() override {
    auto event = std::make_shared<PacedEvent>();
    put([this, event] { event->at = std::max(free_at_, now()); });
    return event;
  }
  void wait(const std::shared_ptr<kernels::Event>&) override {}
  void synchronize() override {
    for (; !held_back_.empty(); held_back_.pop_front()) held_back_.front()();
    held_ = false;
  }
  bool hold(const kernels::Hold&) override { return held_ = holds_; }

 private:
  void put(std::function<void()> action) {
    if (held_) return held_back_.push_back(std::move(action));
    action();
  }

  bool holds_, held_ = false;
  double free_at_ = 0;
  std::deque<std::function<void()>> held_back_;
};

// A stream whose every launch waits for earlier work.
class WaitingStream : public PacedStream {
 public:
  explicit WaitingStream(int& holds) : PacedStream(false), holds_(holds) {}
  bool hold(const kernels::Hold& hold) override {
    ++holds_;
    before_ = hold.turn();
    return true;
  }
  void launch(const kernels::Call& call) override {
    if (before_) before_();
    before_ = nullptr;
    PacedStream::launch(call);
  }

 private:
  int& holds_;
  std::function<void()> before_;
};

class PacedDevice : public kernels::Device {
 public:
  explicit PacedDevice(bool holds) : holds_(holds) {}
  kernels::DeviceFacts facts() const override { return {"cuda", "none", {}, 1, 0, 0}; }
  void* allocate(std::size_t bytes, kernels::Place) override {
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void release(void* memory, kernels::Place) override { std::free(memory); }
  std::unique_ptr<kernels::Stream> make_stream() override { return std::make_unique<PacedStream>(holds_); }
  double clock_hz() override { return 0; }

 private:
  bool holds_;
};

class WaitingDevice : public PacedDevice {
 public:
  WaitingDevice() : PacedDevice(false) {}
  std::unique_ptr<kernels::Stream> make_stream() override { return std::make_unique<WaitingStream>(holds); }
  int holds = 0;
};

TEST(KernelTimer, OfAStreamThatHoldsLeavesOutTheHost) {
  PacedDevice device(true);
  KernelTimer timer(device, Cache::warm, 0.01, [] { return false; });
  EXPECT_NEAR(summarise(timer.launch()).seconds, kKernel, 0.3 * kKernel);
  EXPECT_NEAR(timer.take_host_launch_s(), kHost, 0.3 * kHost);
  EXPECT_EQ(timer.take_host_launch_s(), 0) << "asked a moment ago";
}

TEST(KernelTimer, OfOneThatDoesNotHoldIsThatOfBoth) {
  PacedDevice device(false);
  KernelTimer timer(device, Cache::warm, 0.01, [] { return false; });
  EXPECT_GT(summarise(timer.launch()).seconds, 0.9 * kHost);
  EXPECT_EQ(timer.take_host_launch_s(), 0);
}

TEST(KernelTimer, HoldsNoMoreWhereALaunchWaitedForTheHold) {
  WaitingDevice device;
  KernelTimer timer(device, Cache::warm, 0.01, [] { return false; });
  EXPECT_GE(timer.launch().size(), 3U);
  EXPECT_EQ(device.holds, 1);
  EXPECT_EQ(timer.take_host_launch_s(), 0) << "the wait is in it";
}

}  // namespace
}  // namespace rehearse
