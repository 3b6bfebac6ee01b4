// How long does a message or a collective take, and a kernel concurrent with it? One rank's side of the
// measurement.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "calibrate/timing/placements.h"
#include "calibrate/timing/ranks.h"

namespace rehearse {

// All ranks of the world make one and call the same functions in the same order. Arguments are the same,
// except `stopped`, which ends the measurement when it is true on any rank. Results are equal on all ranks.
// Ranks that are threads read each other's memory: after a failure none may be destroyed before all have
// ended.
class MessageTimer {
 public:
  MessageTimer(kernels::Device& device, kernels::World& world);
  ~MessageTimer();

  int rank() const { return world_.rank(); }
  const std::vector<int>& machines() const { return machines_; }  // by rank

  // Whether the flag is true on any rank.
  bool any(bool here);
  // The flags of rank 0.
  std::vector<bool> said_by_first(const std::vector<bool>& flags);

  // Seconds of one message, by sample: the mean over its members.
  std::vector<double> time(const PlacedMessage& message, double budget_s,
                           const std::function<bool()>& stopped);

  // Seconds of one run of the calls of a set, sets in turn: isolated, and while the message is sent
  // repeatedly. `sets` are on this rank's device.
  struct Beside {
    std::vector<double> alone_s, beside_s;  // by sample; none where the messages always end first
  };
  using Sets = std::vector<std::vector<kernels::Call>>;
  Beside time_beside(const PlacedMessage& message, const Sets& sets, double budget_s,
                     const std::function<bool()>& stopped);

  // The same by rank, on all ranks at once and for `duration_s`: medians of its second half, when power
  // limits act.
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
  int joined_ = 0;                // groups so far; gives each a unique name
  std::unique_ptr<Group> group_;  // of the current message
};

// Runs body(i) for all ranks of this process, each on a thread. When one throws, its world is aborted. The
// first exception is rethrown when all have ended.
void on_each_rank(const Ranks& ranks, const std::function<void(std::size_t)>& body);

}  // namespace rehearse
