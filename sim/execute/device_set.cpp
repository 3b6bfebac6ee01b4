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
  DeviceSet site = one_device(DeviceKind::cuda);
  site.worlds = kernels::open_memory_worlds(1);
  site.how = "1 thread with one GPU";
  return site;
}

}  // namespace

DeviceSet threads_of(const Plan& plan) {
  DeviceSet site = one_device(DeviceKind::cpu);
  site.worlds = kernels::open_memory_worlds(plan.gpus());
  site.first_core = 0;
  site.how = fmt::format("{} thread{}", plan.gpus(), plan.gpus() == 1 ? "" : "s");
  return site;
}

DeviceSet one_device(DeviceKind kind) {
  DeviceSet site;
  site.devices.push_back(kind == DeviceKind::cuda ? kernels::open_cuda() : kernels::open_cpu());
  return site;
}

DeviceSet parts_of_gpu(int count) {
  DeviceSet site;
  site.devices = kernels::open_cuda_partitions(0, count);
  std::vector<kernels::Device*> devices;
  for (const auto& device : site.devices) devices.push_back(device.get());
  site.worlds = kernels::open_device_worlds(devices);
  site.how = fmt::format("{} threads with {} multiprocessors of one GPU each", count,
                         site.devices.front()->facts().cores);
  return site;
}

DeviceSet open_process(DeviceKind kind, double timeout_s, const kernels::Job& job) {
  const kernels::Launched self = kernels::launched();
  DeviceSet site;
  site.devices.push_back(kind == DeviceKind::cuda
                             ? kernels::open_cuda(kernels::gpu_of(self, kernels::count_gpus()))
                             : kernels::open_cpu());
  site.worlds.push_back(open_world(self, kind, timeout_s, job));
  if (kind == DeviceKind::cpu) site.first_core = self.local_rank;
  site.how = fmt::format("one process per rank, started by {}", self.launcher);
  return site;
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
