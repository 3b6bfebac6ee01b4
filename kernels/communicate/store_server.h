// The one process that holds the notes of a run.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "kernels/communicate/socket.h"

namespace rehearse::kernels {

// A client first says its rank. Then each of its messages starts with one of these letters.
constexpr char kPut = 'P';    // then the key and the value, each a message of its own
constexpr char kGet = 'G';    // then the key; the answer is kThere and the value, or kEnded and the reason
constexpr char kPulse = 'B';  // then where the client stands, a message of its own
constexpr char kRoll = 'R';  // the answer is kThere and a line for each client that has pulsed: its rank, the
                             // seconds since then, where it stood
constexpr char kLeave = 'L';  // it will close its end, and nobody needs to mind
constexpr char kThere = 'V';
constexpr char kEnded = 'E';
inline const std::string kEnd = "end";  // the key whose value says why the run is over

class StoreServer {
 public:
  // Port 0: any. At its own end it waits at most `peace_s` for the clients to leave.
  explicit StoreServer(int port, double peace_s = 5);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  int port() const { return port_of(listening_); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    Socket socket;
    std::string name;
    std::string wanted;  // the key of its open get, or ""
    bool leaves = false;
    std::string stands_at;  // as its last pulse said
    std::optional<Clock::time_point> pulsed;
  };

  void work();
  void serve(Client& client);
  void answer_all();
  std::string roll() const;
  void drop(std::list<Client>::iterator client);

  double peace_s_;
  Socket listening_;
  std::list<Client> clients_;
  std::map<std::string, std::string> notes_;
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

}  // namespace rehearse::kernels
