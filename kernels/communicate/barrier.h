// How do threads wait for each other, until all have arrived or one gives up?
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "kernels/device.h"

namespace rehearse::kernels {

// State that all ranks of a process share: one lock, and the reason why they gave up.
class Monitor {
 public:
  void abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason.empty() ? "a rank gave up" : reason;
    changed_.notify_all();
  }

  // Changes shared state, and wakes the threads that wait for it.
  template <typename Change>
  void change(const Change& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  // Changes shared state that no thread waits for.
  template <typename Change>
  void change_quietly(const Change& change) {
    const std::lock_guard lock(mutex_);
    change();
  }

  // `change` returns whether it completes the condition that others wait for. If not, the caller waits with
  // them.
  template <typename Change, typename Condition>
  void change_or_wait(const Change& change, const Condition& condition) {
    std::unique_lock lock(mutex_);
    if (change())
      changed_.notify_all();
    else
      wait_for(lock, condition);
  }

  // DeviceError when another thread gives up first.
  template <typename Condition>
  void wait_for(const Condition& condition) {
    std::unique_lock lock(mutex_);
    wait_for(lock, condition);
  }

 private:
  template <typename Condition>
  void wait_for(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    changed_.wait(lock, [&] { return condition() || !reason_.empty(); });
    if (!condition()) throw DeviceError(reason_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string reason_;
};

// A reusable barrier of `members` threads. The monitor guards its counters.
class Barrier {
 public:
  Barrier(Monitor& monitor, int members) : monitor_(monitor), members_(members) {}

  void arrive() {
    std::uint64_t round = 0;
    monitor_.change_or_wait(
        [&] {
          round = round_;
          if (++come_ < members_) return false;
          come_ = 0;
          ++round_;
          return true;
        },
        [&] { return round_ != round; });
  }

 private:
  Monitor& monitor_;
  int members_;
  int come_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace rehearse::kernels
