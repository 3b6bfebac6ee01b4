// How can a stream get work faster than it does it? What keeps it from beginning until all of it is put.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace rehearse::kernels {

// Ends when it goes.
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

  // Whether a stream went on before the end.
  bool overdue() const {
    const std::lock_guard lock(state_->mutex);
    return state_->overdue;
  }

  // What a stream runs in its turn: comes back at the end, or after a second, should what is put behind it
  // wait for the stream.
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
