// How do the processes of a run collect their data in one place?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/communicator.h"

namespace rehearse {

// Difference between the clocks of two processes.
struct Clock {
  double ahead_s = 0;  // of rank 0's
  double error_s = 0;  // at most
};

// Seconds of this machine's steady clock.
double now_s();

// Every rank of the world has one and calls the same functions in the same order. All functions block.
class Gathering {
 public:
  // `trusts_boot`: processes since the same boot of a machine share one clock.
  Gathering(kernels::World& world, kernels::Device& device, bool trusts_boot = true);

  bool is_first() const { return group_->rank() == 0; }
  void meet();
  // Rank 0: the numbers of each rank, by rank. The others: nothing.
  std::vector<std::vector<double>> collect(const std::vector<double>& own);
  // Rank 0: by rank. A clock that it does not share is asked kRounds times, and the shortest round trip
  // counts. The clock showed its answer half way through it, within an error bar of that half (Cristian
  // 1989).
  std::vector<Clock> compare_clocks();
  std::string how_clocks_compare() const;  // in words, at rank 0

 private:
  static constexpr int kRounds = 16;
  void send(const void* data, std::size_t bytes, int receiver);
  void receive(void* data, std::size_t bytes, int sender);
  Clock ask(int rank);

  kernels::Device& device_;
  std::unique_ptr<kernels::Communicator> group_;
  std::unique_ptr<kernels::Stream> stream_;
  kernels::Buffer buffer_;
  std::vector<bool> shares_clock_;  // by rank, at rank 0: whether it shares rank 0's clock
};

}  // namespace rehearse
