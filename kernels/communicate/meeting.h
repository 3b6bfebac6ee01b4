// Where threads wait for each other, until all have come or someone gives up.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "kernels/device.h"

namespace rehearse::kernels {

// What all ranks of a process share: one lock, and why they gave up.
class Hall {
 public:
  void abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason.empty() ? "a rank gave up" : reason;
    changed_.notify_all();
  }

  // Changes what is shared, and wakes those who wait for it.
  template <typename Change>
  void change(const Change& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  // DeviceError when somebody gives up before.
  template <typename Condition>
  void wait_for(const Condition& condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return condition() || !reason_.empty(); });
    if (!condition()) throw DeviceError(reason_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string reason_;
};

// A barrier of `members` threads, used again and again. Its counters are guarded by the hall.
class Meeting {
 public:
  Meeting(Hall& hall, int members) : hall_(hall), members_(members) {}

  void arrive() {
    std::uint64_t round = 0;
    hall_.change([&] {
      round = round_;
      if (++come_ == members_) {
        come_ = 0;
        ++round_;
      }
    });
    hall_.wait_for([&] { return round_ != round; });
  }

 private:
  Hall& hall_;
  int members_;
  int come_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace rehearse::kernels
