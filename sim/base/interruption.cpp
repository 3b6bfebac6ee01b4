#include "base/interruption.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>

#include "base/exit_code.h"

namespace rehearse {

namespace {

// Variables that a signal handler may read.
std::atomic<int> noting = 0;  // parts of the work that note a signal
std::atomic<bool> interrupted = false, has_unfinished = false;
std::array<char, PATH_MAX> unfinished{};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int /*signal*/) {
  if (noting > 0 && !interrupted.exchange(true)) return;
  if (has_unfinished) unlink(unfinished.data());
  _exit(kInterrupted);
}

}  // namespace

void end_when_interrupted() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

void note_interruption() {
  ++noting;
}

NotedInterruption::NotedInterruption() {
  ++noting;
}

NotedInterruption::~NotedInterruption() {
  if (--noting == 0) interrupted = false;
}

bool is_interrupted() {
  return interrupted;
}

void remove_when_interrupted(const std::string& path) {
  has_unfinished = false;
  if (path.empty() || path.size() >= unfinished.size()) return;
  unfinished[path.copy(unfinished.data(), path.size())] = '\0';
  has_unfinished = true;
}

}  // namespace rehearse
