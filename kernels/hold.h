// How can work be queued faster than a stream runs it? A hold delays the stream until all work is queued.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace rehearse::kernels {

// Ends with its lifetime.
class Hold {
 public:
  Hold() = default;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { end(); }

  void end() {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
    state_->changed.notify_all();
  }

  // Whether a stream timed out before the end.
  bool overdue() const {
    const std::lock_guard lock(state_->mutex);
    return state_->overdue;
  }

  // The stream runs this function in order. It returns at the end, or after a second, in case later work
  // waits for the stream.
  std::function<void()> turn() const {
    return [state = state_] {
      constexpr std::chrono::seconds kLongest(1);
      std::unique_lock lock(state->mutex);
      state->overdue = !state->changed.wait_for(lock, kLongest, [&] { return state->ended; });
    };
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false, overdue = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace rehearse::kernels
