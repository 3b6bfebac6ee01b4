#include "kernels/communicate/launched.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "kernels/device.h"

namespace rehearse::kernels {

namespace {

struct Launcher {
  const char* name;
  const char *rank, *size, *local_rank, *nodes;  // nodes: of machines, where it is told
  bool has_mpi;
};

// torchrun sets its own names also under the others, and is asked first; a shell inside a Slurm allocation
// has Slurm's names under all of them.
constexpr std::array<Launcher, 4> kLaunchers = {
    Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_WORLD_SIZE", false},
    Launcher{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", nullptr,
             true},
    Launcher{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", nullptr, true},
    Launcher{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_NODES", false},
};

std::optional<int> number(const char* name) {
  const char* text = name == nullptr ? nullptr : std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const std::string_view whole(text);
  int value = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (error != std::errc{} || end != whole.data() + whole.size() || value < 0) {
    throw DeviceError(std::string(name) + " = \"" + text + "\" is no whole number from 0 on");
  }
  return value;
}

int needed(const char* name, const char* beside) {
  const std::optional<int> value = number(name);
  if (!value) throw DeviceError(std::string(beside) + " is set, but " + name + " is not");
  return *value;
}

}  // namespace

Launched launched() {
  Launched self;
  bool several_machines = false;
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = number(launcher.rank);
    if (!rank) continue;
    self.rank = *rank;
    self.size = needed(launcher.size, launcher.rank);
    self.local_rank = needed(launcher.local_rank, launcher.rank);
    self.launcher = launcher.name;
    self.has_mpi = launcher.has_mpi || std::getenv("PMIX_RANK") != nullptr;
    several_machines = number(launcher.nodes).value_or(1) > 1;
    break;
  }
  if (self.rank >= self.size) {
    throw DeviceError("rank " + std::to_string(self.rank) + " of " + std::to_string(self.size) +
                      " ranks: ranks count from 0");
  }
  const char* host = std::getenv("MASTER_ADDR");
  if (host != nullptr && *host != '\0') {
    self.host = host;
  } else if (several_machines) {
    throw DeviceError("ranks on several machines find each other at MASTER_ADDR, which is not set");
  }
  self.port = number("MASTER_PORT").value_or(self.port);
  const char* agent_store = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  if (agent_store != nullptr && std::string_view(agent_store) == "True") ++self.port;
  return self;
}

int gpu_of(const Launched& self, int visible) {
  return visible == 1 ? 0 : self.local_rank;
}

}  // namespace rehearse::kernels
