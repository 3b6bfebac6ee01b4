#include "kernels/communicate/peers.h"

namespace rehearse::kernels {

namespace {

constexpr int kListenMilliseconds = 20;
const std::string kWelcome = "here";

}  // namespace

Peers::Peers(int rank, std::string token, double timeout_s, std::function<Address(int)> address_of)
    : rank_(rank),
      token_(std::move(token)),
      timeout_s_(timeout_s),
      address_of_(std::move(address_of)),
      listener_(0),
      thread_([this] { answer(); }) {}

Peers::~Peers() {
  closing_ = true;
  thread_.join();
}

std::string Peers::hello(const std::string& group, int rank) const {
  return token_ + " " + group + " " + std::to_string(rank);
}

void Peers::answer() {
  while (!closing_) {
    std::vector<pollfd> ends;
    listener_.add_to(ends);
    poll(ends.data(), ends.size(), kListenMilliseconds);
    for (Listener::Caller& caller : listener_.answer()) {
      if (!caller.first.starts_with(token_ + " ")) continue;  // not a rank of this run
      try {
        caller.socket.put(kWelcome);
        caller.socket.flush();
      } catch (const DeviceError&) {
        continue;  // it connects again
      }
      const std::lock_guard lock(mutex_);
      callers_.insert_or_assign(caller.first, caller.socket.release());
      called_.notify_all();
    }
  }
}

Socket Peers::connect(const std::string& group, int peer, const StillOn& still_on) {
  if (peer < rank_) {
    const Address address = address_of_(peer);
    return call(address.host, address.port, hello(group, rank_), kWelcome.substr(0, 1), timeout_s_, still_on)
        .socket.release();
  }
  std::unique_lock lock(mutex_);
  const std::string expected = hello(group, peer);
  while (!callers_.contains(expected)) {
    called_.wait_for(lock, std::chrono::milliseconds(kListenMilliseconds));
    still_on();
  }
  Socket socket = std::move(callers_.at(expected));
  callers_.erase(expected);
  return socket;
}

}  // namespace rehearse::kernels
