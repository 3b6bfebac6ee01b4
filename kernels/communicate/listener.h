// Who connects to a port, and what do they say first? Connections that say nothing hold nobody up.
#pragma once

#include <poll.h>

#include <list>
#include <string>
#include <vector>

#include "kernels/communicate/message_socket.h"

namespace rehearse::kernels {

class Listener {
 public:
  struct Caller {
    MessageSocket socket;
    std::string first;  // its first message
  };

  explicit Listener(int port);  // port 0: any

  int port() const { return port_of(listening_); }
  // What to wait for before answer(), which is to be called several times a second all the same.
  void add_to(std::vector<pollfd>& ends) const;
  // Those whose first message has come since. A connection that has not said one in time is closed; so is the
  // oldest of them when there are too many.
  std::vector<Caller> answer();
  // Whether the last answer() found no file descriptor left for a connection that waits.
  bool is_full() const { return is_full_; }

 private:
  struct Stranger {
    MessageSocket socket;
    Deadline deadline, in_turn;
  };
  void accept_into(std::vector<Caller>& callers);
  bool makes_room();

  Socket listening_;
  std::list<Stranger> strangers_;  // the oldest first
  std::size_t most_strangers_;
  bool is_full_ = false;
};

// Connects and says `first`, until the answer's first letter is one of `letters`: a connection that ends
// before, or is answered by something else, is made again. DeviceError after the deadline.
struct Answered {
  MessageSocket socket;
  std::string answer;
};
Answered call(
    const std::string& host, int port, const std::string& first, const std::string& letters, double timeout_s,
    const StillOn& still_on = [] {});

}  // namespace rehearse::kernels
