#include "kernels/communicate/listener.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace rehearse::kernels {

namespace {

constexpr double kFirstMessage_s = 10;
// A rank's first message arrives shortly after its connection. A connection silent for this long may be
// closed.
constexpr double kTurn_s = 0.02;
constexpr auto kCallPause = std::chrono::milliseconds(20);

// A share of the file descriptors that this process may open.
std::size_t most_strangers() {
  constexpr rlim_t kMin = 4, kMax = 256;
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  return std::clamp(files.rlim_cur / 4, kMin, kMax);
}

}  // namespace

Listener::Listener(int port) : listening_(listen_at(port)), most_strangers_(most_strangers()) {}

void Listener::add_to(std::vector<pollfd>& ends) const {
  if (!is_full_ && strangers_.size() < most_strangers_) ends.push_back({listening_.descriptor(), POLLIN, 0});
  for (const Stranger& stranger : strangers_)
    ends.push_back({stranger.socket.socket().descriptor(), POLLIN, 0});
}

std::vector<Listener::Caller> Listener::answer() {
  std::vector<Caller> callers;
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    bool stays = !stranger->deadline.has_passed();
    try {
      if (auto first = stranger->socket.next()) {
        callers.push_back({std::move(stranger->socket), std::move(*first)});
        stays = false;
      }
    } catch (const DeviceError&) {
      stays = false;
    }
    stranger = stays ? std::next(stranger) : strangers_.erase(stranger);
  }
  accept_into(callers);
  return callers;
}

// A rank's message has usually arrived when its connection is accepted, so other connections do not delay it.
void Listener::accept_into(std::vector<Caller>& callers) {
  is_full_ = false;
  while (strangers_.size() < most_strangers_ || makes_room()) {
    Socket socket(accept4(listening_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.descriptor() < 0 && (errno == EMFILE || errno == ENFILE)) {
      is_full_ = strangers_.empty();
      if (makes_room()) continue;
      return;
    }
    if (socket.descriptor() < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (socket.descriptor() < 0) return;
    socket.hurry();
    Stranger stranger{MessageSocket(std::move(socket)), Deadline(kFirstMessage_s), Deadline(kTurn_s)};
    try {
      if (auto first = stranger.socket.next())
        callers.push_back({std::move(stranger.socket), std::move(*first)});
      else
        strangers_.push_back(std::move(stranger));
    } catch (const DeviceError&) {
      // Not a rank.
    }
  }
}

bool Listener::makes_room() {
  if (strangers_.empty() || !strangers_.front().in_turn.has_passed()) return false;
  strangers_.pop_front();
  return true;
}

Answered call(const std::string& host, int port, const std::string& first, const std::string& letters,
              double timeout_s, const StillOn& still_on) {
  const Deadline deadline(timeout_s);
  std::string trouble;
  while (true) {
    Answered answered{MessageSocket(connect_to(host, port, deadline, still_on)), {}};
    try {
      answered.socket.send(first, deadline);
      while (!deadline.has_passed()) {
        if (auto answer = answered.socket.next()) {
          answered.answer = std::move(*answer);
          if (!answered.answer.empty() && letters.find(answered.answer[0]) != std::string::npos)
            return answered;
          throw DeviceError("something that is no rank answers");
        }
        still_on();
        pollfd end = {answered.socket.socket().descriptor(), POLLIN, 0};
        poll(&end, 1, static_cast<int>(kCallPause.count()));
      }
      trouble = "no answer";
    } catch (const DeviceError& error) {
      trouble = error.what();
    }
    still_on();
    if (deadline.has_passed())
      throw DeviceError("no rank answers at " + place_of(host, port) + ": " + trouble);
    std::this_thread::sleep_for(kCallPause);
  }
}

}  // namespace rehearse::kernels
