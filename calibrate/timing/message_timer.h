// How long does a message or a collective take, and a kernel beside it? One rank's side of the measurement.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "calibrate/timing/placements.h"
#include "calibrate/timing/ranks.h"

namespace rehearse {

// All ranks of the world make one and call the same functions in the same order, with the same arguments but
// for `stopped`, which ends the measurement when any rank's says so. What the ranks are told is equal on all.
// Ranks that are threads read each other's memory: after a failure none may go before all have ended.
class MessageTimer {
 public:
  MessageTimer(kernels::Device& device, kernels::World& world);
  ~MessageTimer();

  int rank() const { return world_.rank(); }
  const std::vector<int>& machines() const { return machines_; }  // by rank

  // Whether it is so on any rank.
  bool any(bool here);
  // What rank 0 says.
  std::vector<bool> said_by_first(const std::vector<bool>& flags);

  // Seconds of one message, by sample: the mean over its members.
  std::vector<double> time(const PlacedMessage& message, double budget_s,
                           const std::function<bool()>& stopped);

  // Seconds of one run of the calls of a set, sets taken in turns, alone and while the message is sent again
  // and again. `sets` are of this rank's device.
  struct Beside {
    std::vector<double> alone_s, beside_s;  // by sample; none beside messages that always end first
  };
  using Sets = std::vector<std::vector<kernels::Call>>;
  Beside time_beside(const PlacedMessage& message, const Sets& sets, double budget_s,
                     const std::function<bool()>& stopped);

  // The same by rank, on all ranks at once and for `duration_s`: medians of its second half, when limits on
  // power act.
  std::vector<double> time_together(const Sets& sets, double duration_s,
                                    const std::function<bool()>& stopped);

 private:
  class Group;
  std::vector<double> shared(const std::vector<double>& values, int root);
  std::vector<double> told_by_all(double value);
  bool join(const PlacedMessage& message);

  kernels::Device& device_;
  kernels::World& world_;
  std::unique_ptr<kernels::Stream> stream_, kernels_;
  std::unique_ptr<kernels::Communicator> all_;
  kernels::Buffer notes_;
  std::vector<int> machines_;
  int joined_ = 0;                // groups so far: none of two has the name of another
  std::unique_ptr<Group> group_;  // of the message in hand
};

// Runs body(i) for all ranks of this process, each on a thread. When one throws, its world is aborted, and
// what was thrown first is thrown here when all have ended.
void on_each_rank(const Ranks& ranks, const std::function<void(std::size_t)>& body);

}  // namespace rehearse
