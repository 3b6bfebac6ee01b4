// Among which ranks are messages timed, and on which machine is each of them?
#pragma once

#include <memory>
#include <vector>

#include "kernels/communicator.h"

namespace rehearse {

// This process's devices and ranks.
struct Ranks {
  std::vector<std::unique_ptr<kernels::Device>> devices;  // one for all of its ranks, or one each
  std::vector<std::unique_ptr<kernels::World>> worlds;    // of the ranks that it runs: all, or one
  bool started = false;  // a launcher started processes: every group that they can form is timed

  kernels::Device& device(std::size_t i) const { return *devices[devices.size() == 1 ? 0 : i]; }
  int size() const { return worlds.empty() ? 1 : worlds.front()->size(); }
};

// Threads of this process, each on a core.
Ranks threads_on_cores(int ranks);

// Indices of the machines, by rank, in order of their first ranks. Machines are distinguished by host name
// or, where it is set, by NCCL_HOSTID, as in NCCL. Every rank calls it, on a group of all.
std::vector<int> machines_of(kernels::Communicator& all, kernels::Device& device, kernels::Stream& stream);

}  // namespace rehearse
