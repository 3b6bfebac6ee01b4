// Which connections have sent a whole request? One thread waits for all of them, so that those that send
// slowly, or nothing, hold up nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace rehearse::studio {

class Lobby {
 public:
  struct Limits {
    std::size_t most_bytes = 0;  // of a request, its head included
    std::size_t most_waiting = 0;
    double most_seconds = 0;  // from the connection to the end of its request
  };
  // A request that is whole, or too long to wait for the rest. The socket, which does not block, is the
  // callee's from then on.
  using Ready = std::function<void(int socket, std::string bytes)>;

  Lobby(const Limits& limits, Ready ready);
  ~Lobby();  // closes those that wait
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  // Takes the socket over. One too many closes the one that has waited longest.
  void admit(int socket);

 private:
  using Clock = std::chrono::steady_clock;
  struct Visitor {
    int socket = -1;
    Clock::time_point came;
    std::string bytes;
  };
  void watch();
  void look_at(std::list<Visitor>& visitors);
  bool is_whole(const std::string& bytes) const;
  bool is_late(const Visitor& visitor) const;
  static bool read(Visitor& visitor);

  Limits limits_;
  Ready ready_;
  int wake_read_ = -1, wake_write_ = -1;
  std::mutex mutex_;
  std::list<Visitor> arrived_;
  bool closing_ = false;
  std::thread thread_;
};

// Bytes of the first request in `bytes`, as far as its head says: 0 while the head is not whole. What the
// head says of chunks or says wrongly is left to the reader: the head alone.
std::size_t request_size(const std::string& bytes);

}  // namespace rehearse::studio
