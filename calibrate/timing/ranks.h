// Among which ranks are messages timed, and on which machine does each of them sit?
#pragma once

#include <memory>
#include <vector>

#include "kernels/communicator.h"

namespace rehearse {

// What this process has of them.
struct Ranks {
  std::vector<std::unique_ptr<kernels::Device>> devices;  // one for all of its ranks, or one each
  std::vector<std::unique_ptr<kernels::World>> worlds;    // of the ranks that it runs: all, or one
  bool started = false;  // processes that a launcher started: every group that they can form is timed

  kernels::Device& device(std::size_t i) const { return *devices[devices.size() == 1 ? 0 : i]; }
  int size() const { return worlds.empty() ? 1 : worlds.front()->size(); }
};

// Threads of this process, each on a core.
Ranks threads_on_cores(int ranks);

// Numbers of the machines, by rank, in order of their first ranks. Machines are told apart by their host
// names or, where it is set, by NCCL_HOSTID, as NCCL does. Every rank calls it, on a group of all.
std::vector<int> machines_of(kernels::Communicator& all, kernels::Device& device, kernels::Stream& stream);

}  // namespace rehearse
