#include "kernels/communicate/launched.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "kernels/device.h"

namespace rehearse::kernels {

namespace {

struct Launcher {
  const char* name;
  const char* sign;  // set only in processes that this launcher starts
  const char *rank, *size, *local_rank;
  const char *machines, *names_of_machines;  // variables with number and names of machines, if any
  bool has_mpi;
};

// Order of detection: torchrun also sets its own names under the other launchers, and is checked first. A
// shell inside a Slurm allocation has Slurm's names under all of them. srun sets PMI_RANK too (--mpi=pmi2),
// but no local rank. A batch script has a SLURM_PROCID and its job's SLURM_NTASKS, but is one process: only
// processes of srun are a step.
constexpr std::array<Launcher, 4> kLaunchers = {
    Launcher{"torchrun", "RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_WORLD_SIZE", nullptr, false},
    Launcher{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_RANK", nullptr, nullptr, true},
    Launcher{"mpirun", "MPI_LOCALRANKID", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", nullptr, nullptr, true},
    Launcher{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
             "SLURM_STEP_NUM_NODES", "SLURM_STEP_NODELIST", false},
};

std::string_view text_of(const char* name) {
  const char* text = name == nullptr ? nullptr : std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

std::optional<std::int64_t> whole_number(const char* name) {
  const std::string_view whole = text_of(name);
  if (whole.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  if (error != std::errc{} || end != whole.data() + whole.size() || value < 0) {
    throw Refused(std::string(name) + " = \"" + std::string(whole) + "\" is no whole number from 0 on");
  }
  return value;
}

std::optional<int> number(const char* name) {
  constexpr int kMax = std::numeric_limits<int>::max();
  const std::optional<std::int64_t> value = whole_number(name);
  if (!value) return std::nullopt;
  if (*value > kMax)
    throw Refused(std::string(name) + " = " + std::to_string(*value) + " is above " + std::to_string(kMax));
  return static_cast<int>(*value);
}

// "r1n08" of Slurm's "r[1,3]n[08-16],login": each list in brackets begins with the first machine's own part.
std::string first_machine(std::string_view names) {
  std::string first;
  bool in_brackets = false, taken = false;  // taken: this bracket's first entry has been read
  for (const char letter : names) {
    if (letter == ',' && !in_brackets) break;
    if (letter == '[' || letter == ']') {
      in_brackets = letter == '[';
      taken = false;
      continue;
    }
    taken = taken || (in_brackets && (letter == ',' || letter == '-'));
    if (!taken) first += letter;
  }
  return first;
}

// Steps that share a machine must not meet at one port. Each step has its own port, below the range that
// systems assign themselves (Linux: from 32768 on). Ports of consecutive jobs are far apart, so that their
// first steps differ. Returns nothing where Slurm does not name the job.
std::optional<int> port_of_step() {
  constexpr std::int64_t kFirst = 20000, kPorts = 12000, kStepsApart = 101;
  const std::optional<std::int64_t> job = whole_number("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  const std::int64_t step = whole_number("SLURM_STEP_ID").value_or(0);
  return static_cast<int>(kFirst + (*job % kPorts * kStepsApart + step % kPorts) % kPorts);
}

// Distinguishes two jobs whose ranks meet at one port. A Slurm step identifies a job only where srun starts
// the ranks. With torchrun, each machine's agent may be a step of its own.
std::string id_of_job(const std::string& launcher) {
  std::string id;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE"}) {
    if (text_of(name).empty() || (name == std::string_view("SLURM_STEP_ID") && launcher != "srun")) continue;
    if (!id.empty()) id += ", ";
    id.append(name).append(" ").append(text_of(name));
  }
  return id;
}

// MASTER_PORT, or the next port where torchrun's agent uses it.
int port_given_or(int otherwise) {
  constexpr std::int64_t kMax = 65535;
  const bool agent_holds_it = text_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const std::int64_t given = whole_number("MASTER_PORT").value_or(otherwise);
  const std::int64_t most = agent_holds_it ? kMax - 1 : kMax;
  if (given < 1 || given > most)
    throw Refused("MASTER_PORT is a port from 1 to " + std::to_string(most) +
                  (agent_holds_it ? ", as ranks meet at the one after that of torchrun's agent" : "") +
                  " (found " + std::to_string(given) +
                  "); nearest legal: " + std::to_string(given < 1 ? 1 : most));
  return static_cast<int>(agent_holds_it ? given + 1 : given);
}

int needed(const char* name, const char* beside) {
  const std::optional<int> value = number(name);
  if (!value) throw Refused(std::string(beside) + " is set, but " + name + " is not");
  return *value;
}

}  // namespace

Launched launched() {
  Launched self;
  bool several_machines = false;
  std::string first;
  for (const Launcher& launcher : kLaunchers) {
    if (text_of(launcher.sign).empty()) continue;
    self.rank = needed(launcher.rank, launcher.sign);
    self.size = needed(launcher.size, launcher.sign);
    self.local_rank = needed(launcher.local_rank, launcher.sign);
    self.launcher = launcher.name;
    self.has_mpi = launcher.has_mpi || std::getenv("PMIX_RANK") != nullptr;
    several_machines = number(launcher.machines).value_or(1) > 1;
    first = first_machine(text_of(launcher.names_of_machines));
    if (self.launcher == "srun") self.port = port_of_step().value_or(self.port);
    break;
  }
  if (self.rank >= self.size) {
    throw Refused("rank " + std::to_string(self.rank) + " of " + std::to_string(self.size) +
                  " ranks: ranks count from 0");
  }
  if (const std::string_view host = text_of("MASTER_ADDR"); !host.empty()) {
    self.host = host;
  } else if (several_machines) {
    if (first.empty())
      throw Refused("ranks on several machines find each other at MASTER_ADDR, which is not set");
    self.host = first;
  }
  if (self.size == 1) return self;
  self.port = port_given_or(self.port);
  self.job_id = id_of_job(self.launcher);
  return self;
}

int gpu_of(const Launched& self, int visible) {
  return visible == 1 ? 0 : self.local_rank;
}

}  // namespace rehearse::kernels
