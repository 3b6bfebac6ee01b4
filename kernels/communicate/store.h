// How do the processes of a run leave notes for each other, and learn that one of them is gone?
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/communicate/hello.h"
#include "kernels/communicate/message_socket.h"

namespace rehearse::kernels {

class StoreServer;

// One instance a process; rank 0's holds the notes. The constructor finds rank 0 within `timeout_s`. get()
// waits as long for a note.
class Store {
 public:
  // Refused where rank 0 runs another job, or this rank exists already.
  explicit Store(const Launched& self, double timeout_s = 120, const Job& job = {});
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();  // leaves cleanly; rank 0 waits a limited time for the others to leave

  int port() const { return self_.port; }              // of rank 0
  const std::string& token() const { return token_; }  // of the run: the same on all ranks, and on no other

  // Blocks until all ranks have arrived. DeviceError or Refused where they do not.
  void wait_for_all();
  void put(const std::string& key, const std::string& value);
  // Waits until a rank puts the note. DeviceError after the run's end, or when no rank puts it in time.
  std::string get(const std::string& key);

  // Tells rank 0 that this rank is alive, and its current op.
  void pulse(const std::string& stands_at);
  struct Standing {
    int rank = 0;
    double silent_s = 0;  // since its last pulse
    std::string at;
  };
  // The state of all ranks that have pulsed, ascending. DeviceError when rank 0 does not answer.
  std::vector<Standing> roll_call();

  // The address at which other ranks reach this machine.
  std::string own_address() const;

  void end(const std::string& reason);  // of the run, for everybody
  // Why the run has ended: end(), or a process that went without leaving cleanly. "" while it goes on.
  std::string ended() const;
  bool refused() const;  // whether the user made a mistake

 private:
  void serve(const Job& job);
  void enter(const Job& job, double timeout_s);
  void listen();
  void take(const std::string& message);
  void say(char what, const std::string& rest);
  std::string ask(char what, const std::string& key, const std::string& note, double wait_s);

  Launched self_;
  double timeout_s_;
  std::unique_ptr<StoreServer> server_;
  std::optional<MessageSocket> socket_;  // to rank 0
  std::string token_;
  std::mutex sending_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> answers_;  // notes, which do not change, and the last roll call
  std::string ended_;
  bool refused_ = false, leaving_ = false;
  std::thread thread_;
};

}  // namespace rehearse::kernels
