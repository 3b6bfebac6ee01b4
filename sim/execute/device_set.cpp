#include "execute/device_set.h"

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/communicate/launched.h"

namespace rehearse {

namespace {

std::unique_ptr<kernels::World> open_world(const kernels::Launched& self, DeviceKind kind, double timeout_s,
                                           const kernels::Job& job) {
  if (kind == DeviceKind::cuda) return kernels::open_nccl_world(timeout_s, job);
  if (!self.has_mpi) return kernels::open_socket_world(timeout_s, job);
  try {
    return kernels::open_mpi_world(timeout_s, job);
  } catch (const kernels::DeviceMissing&) {
    return kernels::open_socket_world(timeout_s, job);  // which needs no more than mpirun's environment
  }
}

DeviceSet thread_with_gpu() {
  DeviceSet device_set = one_device(DeviceKind::cuda);
  device_set.worlds = kernels::open_memory_worlds(1);
  device_set.how = "1 thread with one GPU";
  return device_set;
}

}  // namespace

DeviceSet threads_of(const Plan& plan) {
  DeviceSet device_set = one_device(DeviceKind::cpu);
  device_set.worlds = kernels::open_memory_worlds(plan.gpus());
  device_set.first_core = 0;
  device_set.how = fmt::format("{} thread{}", plan.gpus(), plan.gpus() == 1 ? "" : "s");
  return device_set;
}

DeviceSet one_device(DeviceKind kind) {
  DeviceSet device_set;
  device_set.devices.push_back(kind == DeviceKind::cuda ? kernels::open_cuda() : kernels::open_cpu());
  return device_set;
}

DeviceSet parts_of_gpu(int count) {
  DeviceSet device_set;
  device_set.devices = kernels::open_cuda_partitions(0, count);
  std::vector<kernels::Device*> devices;
  for (const auto& device : device_set.devices) devices.push_back(device.get());
  device_set.worlds = kernels::open_device_worlds(devices);
  device_set.how = fmt::format("{} threads with {} multiprocessors of one GPU each", count,
                               device_set.devices.front()->facts().cores);
  return device_set;
}

DeviceSet open_process(DeviceKind kind, double timeout_s, const kernels::Job& job) {
  const kernels::Launched self = kernels::launched();
  DeviceSet device_set;
  device_set.devices.push_back(kind == DeviceKind::cuda
                                   ? kernels::open_cuda(kernels::gpu_of(self, kernels::count_gpus()))
                                   : kernels::open_cpu());
  device_set.worlds.push_back(open_world(self, kind, timeout_s, job));
  if (kind == DeviceKind::cpu) device_set.first_core = self.local_rank;
  device_set.how = fmt::format("one process per rank, started by {}", self.launcher);
  return device_set;
}

DeviceSet open_device_set(const Plan& plan, DeviceKind kind, double timeout_s, const kernels::Job& job) {
  const kernels::Launched self = kernels::launched();
  if (self.size == 1 && kind == DeviceKind::cpu) return threads_of(plan);
  if (self.size == 1) return plan.gpus() == 1 ? thread_with_gpu() : parts_of_gpu(plan.gpus());
  if (self.size != plan.gpus())
    throw InputError(
        {"", "/gpus", "there is one process for each rank of the plan",
         fmt::format("{} started {} processes, the plan has {} ranks", self.launcher, self.size, plan.gpus()),
         fmt::format("{} processes, or tp x cp x pp x dp = {}", plan.gpus(), self.size)});
  return open_process(kind, timeout_s, job);
}

}  // namespace rehearse
