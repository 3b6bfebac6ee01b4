// Who connects to a port, and which message do they send first? Silent connections delay nobody.
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
  // Adds the descriptors to poll before answer(). Call answer() several times a second even without events.
  void add_to(std::vector<pollfd>& ends) const;
  // Callers whose first message has arrived since the last call. Connections without a message are closed
  // after a timeout, and the oldest of them when there are too many.
  std::vector<Caller> answer();
  // Whether the last answer() had no file descriptor left for a waiting connection.
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

// Connects and sends `first`, until the answer's first letter is one of `letters`. It connects again when the
// connection closes early or the answer is different. DeviceError after the deadline.
struct Answered {
  MessageSocket socket;
  std::string answer;
};
Answered call(
    const std::string& host, int port, const std::string& first, const std::string& letters, double timeout_s,
    const StillOn& still_on = [] {});

}  // namespace rehearse::kernels
