// A stream of the CPU: a thread that runs its items in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "kernels/device.h"

namespace rehearse::kernels::cpu {

class CpuEvent : public Event {
 public:
  void wait() override;
  double seconds_since(Event& earlier) override;
  // `failure`: an item before the event failed.
  void happen(std::exception_ptr failure = nullptr);

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
  std::exception_ptr failure_;
  Clock::time_point at_;
};

class CpuStream : public Stream {
 public:
  explicit CpuStream(int threads);
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;
  ~CpuStream() override;  // after all queued items have run

  void launch(const Call& call) override;
  void launch_on_host(const Call& call) override { launch(call); }
  void copy(void* to, const void* from, std::size_t bytes) override;
  void clear(void* memory, std::size_t bytes) override;
  std::shared_ptr<Event> record() override;
  void wait(const std::shared_ptr<Event>& event) override;
  void synchronize() override;
  bool hold(const Hold& /*hold*/) override { return false; }

  // Communicators put their operations here.
  void put(std::function<void()> action);

 private:
  struct Item {
    std::function<void()> action;
    bool even_after_failure = false;  // events happen after a failure too, or their waiters would never wake
  };
  void put(Item item);
  void work();
  void run(const Item& item);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::deque<Item> taken_;  // by the thread, without the lock
  bool busy_ = false;
  bool closing_ = false;
  std::exception_ptr failure_;  // owned by the thread while busy_, else guarded by the lock
  int threads_;
  std::thread thread_;
};

// The CPU stream behind a Stream; DeviceError for another device's.
CpuStream& as_cpu(Stream& stream);

}  // namespace rehearse::kernels::cpu
