#include "calibrate/timing/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string>

namespace rehearse {

namespace {

std::string name_of_machine() {
  const char* given = std::getenv("NCCL_HOSTID");
  if (given != nullptr && *given != '\0') return given;
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Ranks threads_on_cores(int ranks) {
  Ranks made;
  made.devices.push_back(kernels::open_cpu());
  made.worlds = kernels::open_memory_worlds(ranks);
  return made;
}

std::vector<int> machines_of(kernels::Communicator& all, kernels::Device& device, kernels::Stream& stream) {
  const auto count = static_cast<std::size_t>(all.size());
  const auto own = static_cast<std::int64_t>(std::hash<std::string>{}(name_of_machine()));
  std::vector<std::int64_t> names(count);
  const kernels::Buffer from(device, sizeof own), to(device, count * sizeof own);
  stream.copy(from.data(), &own, sizeof own);
  all.all_gather(stream, {from.data(), kernels::Type::int64, 1, 1},
                 {to.data(), kernels::Type::int64, 1, all.size()});
  stream.copy(names.data(), to.data(), to.bytes());
  stream.synchronize();
  std::vector<std::int64_t> known;
  std::vector<int> machines;
  for (const std::int64_t name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    machines.push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(name);
  }
  return machines;
}

}  // namespace rehearse
