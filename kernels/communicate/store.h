// Where the processes of a run leave each other notes, and learn that one of them is gone.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/communicate/launched.h"
#include "kernels/communicate/socket.h"

namespace rehearse::kernels {

class StoreServer;

// One a process; rank 0's holds the notes. All must come within `patience_s`, which is also how long get()
// waits for a note.
class Store {
 public:
  explicit Store(const Launched& self, double patience_s = 120);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();  // leaves in peace; rank 0 waits a while for the others to leave

  int port() const { return self_.port; }  // of rank 0

  void put(const std::string& key, const std::string& value);
  // Waits until somebody puts it. DeviceError after the end, or when nobody does.
  std::string get(const std::string& key);

  // Tells rank 0 that this rank lives, and where it stands.
  void pulse(const std::string& stands_at);
  struct Standing {
    int rank = 0;
    double silent_s = 0;  // since its last pulse
    std::string at;
  };
  // Of all ranks that have pulsed, ascending. DeviceError when rank 0 does not answer.
  std::vector<Standing> roll_call();

  // As the other ranks reach this machine.
  std::string own_address() const;

  void end(const std::string& reason);  // of the run, for everybody
  // Why the run has ended: end(), or a process that went without leaving in peace. "" while it goes on.
  std::string ended() const;

 private:
  void listen();

  Launched self_;
  double patience_s_;
  std::unique_ptr<StoreServer> server_;
  std::mutex talking_;
  Socket notes_, news_;  // news: who waits for the end
  mutable std::mutex mutex_;
  std::string ended_;
  bool leaving_ = false;
  std::thread listener_;
};

}  // namespace rehearse::kernels
