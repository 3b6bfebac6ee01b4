// Where does a run take place? In threads of this process, or in processes that somebody has started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/communicator.h"
#include "plan/plan.h"

namespace rehearse {

enum class DeviceKind : std::uint8_t { cpu, cuda };

// What this process has of it.
struct DeviceSet {
  std::vector<std::unique_ptr<kernels::Device>> devices;  // one for all of its ranks, or one each
  std::vector<std::unique_ptr<kernels::World>> worlds;    // of the ranks that it runs: all, or one
  // Of its first rank, among those of the machine. None: ranks with GPUs are not kept on one, where NCCL's
  // threads would be too.
  std::optional<int> first_core = {};
  std::string how;  // "4 threads", "one process a rank, under mpirun"

  kernels::Device& device(std::size_t rank) const { return *devices[devices.size() == 1 ? 0 : rank]; }
  bool is_first() const { return worlds.front()->rank() == 0; }
};

// All ranks as threads.
DeviceSet threads_of(const Plan& plan);

// One core or GPU alone, without ranks: what kernels are timed on. kernels::DeviceMissing without it.
DeviceSet one_device(DeviceKind kind);

// As many threads, each with its part of the multiprocessors of one GPU. kernels::DeviceMissing without it.
DeviceSet parts_of_gpu(int count);

// This process as one of those that torchrun, mpirun or srun started, with a core or the GPU of its local
// rank.
DeviceSet open_process(DeviceKind kind, double timeout_s, const kernels::Job& job);

// As the environment says: one process a rank under torchrun, mpirun or srun, where they have started more
// than one; else threads, and with `cuda` and several ranks each of them has its part of the multiprocessors
// of one GPU. InputError when they have not started as many as the plan has ranks; what must come does so
// within `timeout_s`, or kernels::DeviceError says who has not. kernels::Refused where processes run
// different jobs, kernels::DeviceMissing without the device.
DeviceSet open_device_set(const Plan& plan, DeviceKind kind, double timeout_s, const kernels::Job& job = {});

}  // namespace rehearse
