#include "kernels/communicate/peers.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>

#include "kernels/device.h"

namespace rehearse::kernels {

namespace {

constexpr int kPollMilliseconds = 20;
constexpr double kHello_s = 10;
constexpr double kCall_s = 30;

std::string hello(const std::string& group, int rank) {
  return group + " " + std::to_string(rank);
}

}  // namespace

Peers::Peers(int rank, std::function<Address(int)> address_of)
    : rank_(rank),
      address_of_(std::move(address_of)),
      listening_(listen_at(0)),
      thread_([this] { answer(); }) {}

Peers::~Peers() {
  closing_ = true;
  thread_.join();
}

void Peers::answer() {
  while (!closing_) {
    pollfd end = {listening_.descriptor(), POLLIN, 0};
    if (poll(&end, 1, kPollMilliseconds) <= 0) continue;
    Socket caller(accept(listening_.descriptor(), nullptr, nullptr));
    try {
      caller.hurry();
      caller.allow_silence(kHello_s);
      const std::string said = receive_text(caller);
      const std::lock_guard lock(mutex_);
      callers_.insert_or_assign(said, std::move(caller));
      called_.notify_all();
    } catch (const DeviceError&) {
      // No rank, or one that has gone.
    }
  }
}

Socket Peers::connect(const std::string& group, int peer, const std::function<void()>& still_on) {
  if (peer < rank_) {
    const Address address = address_of_(peer);
    Socket socket = connect_to(address.host, address.port, kCall_s);
    send_text(socket, hello(group, rank_));
    return socket;
  }
  std::unique_lock lock(mutex_);
  const std::string expected = hello(group, peer);
  while (!callers_.contains(expected)) {
    called_.wait_for(lock, std::chrono::milliseconds(kPollMilliseconds));
    still_on();
  }
  Socket socket = std::move(callers_.at(expected));
  callers_.erase(expected);
  return socket;
}

}  // namespace rehearse::kernels
