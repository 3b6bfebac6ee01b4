#include "base/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/say.h"

namespace rehearse {

namespace {

constexpr double kBetweenLines_s = 0.1;
constexpr std::chrono::milliseconds kSilence{2000}, kBetweenSeconds{1000};

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(std::size_t points)
    : points_(points), shown_(isatty(STDERR_FILENO) == 1 && points > 0), begin_s_(monotonic_s()) {}

Progress::~Progress() {
  if (shown_ && done_ > 0) print_talk("\r\x1b[K");
}

void Progress::row_done() {
  ++done_;
  const double now = monotonic_s();
  if (!shown_ || (now - last_s_ < kBetweenLines_s && done_ < points_)) return;
  last_s_ = now;
  const double rate = static_cast<double>(done_) / std::max(1e-9, now - begin_s_);
  const auto left = static_cast<long>(static_cast<double>(points_ - done_) / rate);
  print_talk(fmt::format("\r\x1b[K[{}/{}] {:.3g} rows/s, {}:{:02} left", done_, points_, rate, left / 60,
                         left % 60));
}

namespace {

void show_activity(const std::stop_token& stopped, const std::string& what) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  const double begin_s = monotonic_s();
  bool shown = false;
  while (!wake.wait_for(lock, stopped, shown ? kBetweenSeconds : kSilence,
                        [&] { return stopped.stop_requested(); })) {
    const auto seconds = static_cast<long>(monotonic_s() - begin_s);
    print_talk(fmt::format("\r\x1b[K{}, {}:{:02}", what, seconds / 60, seconds % 60));
    shown = true;
  }
  if (shown) print_talk("\r\x1b[K");
}

}  // namespace

Activity::Activity(std::string what) {
  if (isatty(STDERR_FILENO) != 1) return;
  clock_ = std::jthread(
      [what = std::move(what)](const std::stop_token& stopped) { show_activity(stopped, what); });
}

}  // namespace rehearse
