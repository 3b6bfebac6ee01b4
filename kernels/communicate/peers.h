// One connection for every two members of every group, made when they first communicate.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "kernels/communicate/listener.h"

namespace rehearse::kernels {

// One rank's side. The higher of two ranks connects to the lower one.
class Peers {
 public:
  // `address_of` returns the host and port of a rank. Ranks of a run recognise each other by its token, and
  // answer within `timeout_s`.
  struct Address {
    std::string host;
    int port = 0;
  };
  Peers(int rank, std::string token, double timeout_s, std::function<Address(int)> address_of);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  ~Peers();

  int port() const { return listener_.port(); }
  // Blocks until the two ranks are connected; `still_on` is called meanwhile.
  Socket connect(const std::string& group, int peer, const StillOn& still_on);

 private:
  void answer();
  std::string hello(const std::string& group, int rank) const;

  int rank_;
  std::string token_;
  double timeout_s_;
  std::function<Address(int)> address_of_;
  Listener listener_;
  std::mutex mutex_;
  std::condition_variable called_;
  std::map<std::string, Socket> callers_;  // by their first message
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

}  // namespace rehearse::kernels
