#include "execute/site.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/communicate/launched.h"

namespace rehearse {

namespace {

std::unique_ptr<kernels::World> open_world(const kernels::Launched& self, DeviceKind kind,
                                           double patience_s) {
  if (kind == DeviceKind::cuda) return kernels::open_nccl_world(patience_s);
  if (!self.has_mpi) return kernels::open_socket_world(patience_s);
  try {
    return kernels::open_mpi_world(patience_s);
  } catch (const kernels::DeviceMissing&) {
    return kernels::open_socket_world(patience_s);  // which needs no more than mpirun's environment
  }
}

}  // namespace

Site threads_of(const Plan& plan) {
  return {kernels::open_cpu(), kernels::open_memory_worlds(plan.gpus()), 0,
          fmt::format("{} thread{}", plan.gpus(), plan.gpus() == 1 ? "" : "s")};
}

Site open_site(const Plan& plan, DeviceKind kind, double patience_s) {
  const kernels::Launched self = kernels::launched();
  std::unique_ptr<kernels::Device> device =
      kind == DeviceKind::cuda ? kernels::open_cuda(self.local_rank) : kernels::open_cpu();
  if (self.size > 1 && self.size != plan.gpus())
    throw InputError(
        {"", "/gpus", "there is one process for each rank of the plan",
         fmt::format("{} started {} processes, the plan has {} ranks", self.launcher, self.size, plan.gpus()),
         fmt::format("{} processes, or tp x cp x pp x dp = {}", plan.gpus(), self.size)});
  if (self.size == 1 && kind == DeviceKind::cpu) return threads_of(plan);
  if (self.size == 1 && plan.gpus() > 1)
    throw InputError({"", "/gpus", "every rank has a GPU and a process of its own",
                      fmt::format("one process, {} ranks", plan.gpus()),
                      fmt::format("torchrun --no-python --nproc-per-node {0}, mpirun -n {0} or srun -n {0} "
                                  "before the command",
                                  plan.gpus())});
  Site site;
  site.device = std::move(device);
  site.first_core = self.local_rank;
  site.how = self.size == 1 ? "one process" : fmt::format("one process a rank, started by {}", self.launcher);
  if (self.size == 1) {
    site.worlds = kernels::open_memory_worlds(1);
  } else {
    site.worlds.push_back(open_world(self, kind, patience_s));
  }
  return site;
}

}  // namespace rehearse
