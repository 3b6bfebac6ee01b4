// Which connections have sent a whole request, and how do they get their answers? One thread waits for all
// sockets, so that those that send or read slowly, or not at all, hold up nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rehearse::studio {

class Connections {
 public:
  struct Limits {
    std::size_t request_bytes = 0;  // its head included
    std::size_t answer_bytes = 0;   // of all answers that are not taken yet
    std::size_t count = 0;
    double seconds = 0;  // to send a request, and to take an answer
  };
  // A request that is whole, or too long to wait for the rest. answer() is due, from any thread.
  using Ready = std::function<void(int socket, std::string bytes)>;

  Connections(const Limits& limits, Ready ready);
  ~Connections();  // sends the answers that are there and closes all
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Takes the socket over. One too many is told to come again (503): the one that has been silent longest,
  // else the new one.
  void admit(int socket);

  // Sends the answer of a request and closes its connection.
  void answer(int socket, std::string bytes);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { receiving, answering, sending, leaving, ended };
  struct Connection {
    int socket = -1;
    State state = State::receiving;
    Clock::time_point since;  // it has been in this state
    std::string bytes;        // received, or to be sent
    std::size_t sent = 0;
  };
  void watch();
  bool take_in();  // what admit() and answer() left; false at the end
  void keep_limits();
  void go_on();
  void step(Connection& connection);
  void receive(Connection& connection);
  bool is_late(const Connection& connection) const;
  static void send_some(Connection& connection);
  static void enter(Connection& connection, State state);
  static void end(Connection& connection);
  static std::size_t waiting_bytes(const Connection& connection);

  Limits limits_;
  Ready ready_;
  int wake_read_ = -1, wake_write_ = -1;
  std::list<Connection> connections_;  // the thread's own, in the order in which they came
  std::mutex mutex_;
  std::vector<int> arrived_;
  std::vector<std::pair<int, std::string>> answers_;
  bool closing_ = false;
  std::thread thread_;
};

// Bytes of the first request in `bytes`, as far as its head says: 0 while the head is not whole. What the
// head says of chunks or says wrongly is left to the reader: the head alone.
std::size_t request_size(const std::string& bytes);

// An answer that asks to try again in a moment.
std::string busy_answer();

}  // namespace rehearse::studio
