// A connection of its own for every two members of every group, made when they first speak.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "kernels/communicate/socket.h"

namespace rehearse::kernels {

// The end of one rank. The higher of two ranks calls, the lower one is called.
class Peers {
 public:
  // `address_of` says where a rank is called: its host and port.
  struct Address {
    std::string host;
    int port = 0;
  };
  Peers(int rank, std::function<Address(int)> address_of);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  ~Peers();

  int port() const { return port_of(listening_); }
  // Blocks until the other one has called or answers; `still_on` is asked meanwhile.
  Socket connect(const std::string& group, int peer, const std::function<void()>& still_on);

 private:
  void answer();

  int rank_;
  std::function<Address(int)> address_of_;
  Socket listening_;
  std::mutex mutex_;
  std::condition_variable called_;
  std::map<std::string, Socket> callers_;  // by what they said: group and rank
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

}  // namespace rehearse::kernels
