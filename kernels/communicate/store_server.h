// Which process holds the notes of a run and admits its ranks? The server on rank 0.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "kernels/communicate/hello.h"
#include "kernels/communicate/listener.h"

namespace rehearse::kernels {

// A client first sends its Hello. The answer is kThere and the run's token, or the end. After that, each
// message of either side starts with one of these letters.
constexpr char kPut = 'P';      // a key, a line break, a value
constexpr char kGet = 'G';      // a key
constexpr char kPulse = 'B';    // where the client stands
constexpr char kRoll = 'R';     // asks for the note kRollCall
constexpr char kLeave = 'L';    // the client will close its end, which is not an error
constexpr char kThere = 'V';    // a note that was asked for: the key, a line break, the value
constexpr char kEnded = 'E';    // why the run is over: from a client, and then to each
constexpr char kRefused = 'X';  // the same, where jobs differ or this one is not a rank of the run
inline const std::string kAllAreHere = "all are here";
// One line for each client that has pulsed: its rank, the seconds since then, its op.
inline const std::string kRollCall = "roll";

class StoreServer {
 public:
  // Port 0: any; PortInUse. All ranks must arrive, and every message must be complete, within `timeout_s`.
  // The destructor waits at most `peace_s` for the clients to leave.
  StoreServer(int port, Hello own, double timeout_s, double peace_s = 5);
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  ~StoreServer();

  int port() const { return listener_.port(); }

 private:
  struct Client {
    MessageSocket socket;
    int rank = 0;
    std::string process;
    std::set<std::string> wanted;  // keys of its open gets
    bool leaves = false;
    std::string stands_at;  // from its last pulse
    std::optional<std::chrono::steady_clock::time_point> pulsed;
  };
  using Clients = std::list<Client>;

  void work();
  bool is_over(const Deadline& peace) const;
  bool serve(Clients::iterator client, bool has_come);
  void take(Client& client, const std::string& message);
  void put(const std::string& key, const std::string& value);
  void admit(Listener::Caller caller);
  std::string fault_of(const Hello& hello);
  bool is_taken(const Hello& hello, std::string& by);
  void watch_the_beginning();
  void end(char letter, const std::string& reason);
  std::string roll() const;

  Hello own_;
  int size_;
  double timeout_s_, peace_s_;
  Listener listener_;
  std::string token_;
  Deadline beginning_;
  Clients clients_;
  std::set<int> seen_;  // ranks that have introduced themselves
  bool all_are_here_ = false;
  std::map<std::string, std::string> notes_;
  std::string end_;  // the message with the reason why the run is over; "" while it goes on
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

}  // namespace rehearse::kernels
