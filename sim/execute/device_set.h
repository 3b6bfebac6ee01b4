// Where does a run take place? In threads of this process, or in processes that a launcher has started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/communicator.h"
#include "plan/plan.h"

namespace rehearse {

enum class DeviceKind : std::uint8_t { cpu, cuda };

// The devices and ranks of a run that this process has.
struct DeviceSet {
  std::vector<std::unique_ptr<kernels::Device>> devices;  // one for all of its ranks, or one each
  std::vector<std::unique_ptr<kernels::World>> worlds;    // of the ranks that it runs: all, or one
  // Core of its first rank, among those of the machine. None: ranks with GPUs are not kept on one core,
  // because NCCL's threads would be on it too.
  std::optional<int> first_core = {};
  std::string how;  // "4 threads", "one process a rank, under mpirun"

  kernels::Device& device(std::size_t rank) const { return *devices[devices.size() == 1 ? 0 : rank]; }
  bool is_first() const { return worlds.front()->rank() == 0; }
};

// All ranks as threads.
DeviceSet threads_of(const Plan& plan);

// One core or GPU alone, without ranks, to time kernels on. kernels::DeviceMissing without it.
DeviceSet one_device(DeviceKind kind);

// `count` threads, each with its part of the multiprocessors of one GPU. kernels::DeviceMissing without it.
DeviceSet parts_of_gpu(int count);

// This process as one of those that torchrun, mpirun or srun started, with the core or the GPU of its local
// rank.
DeviceSet open_process(DeviceKind kind, double timeout_s, const kernels::Job& job);

// The environment decides. If torchrun, mpirun or srun started several processes, each is a rank. Otherwise
// ranks are threads; with `cuda` and several ranks, each thread has its part of the multiprocessors of one
// GPU.
//
// InputError when the number of processes is not the plan's number of ranks. kernels::DeviceError names the
// processes that are missing after `timeout_s`. kernels::Refused where processes run different jobs,
// kernels::DeviceMissing without the device.
DeviceSet open_device_set(const Plan& plan, DeviceKind kind, double timeout_s, const kernels::Job& job = {});

}  // namespace rehearse
