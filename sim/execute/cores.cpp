#include "execute/cores.h"

#include <sched.h>

#include <vector>

namespace rehearse {

namespace {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

}  // namespace

void pin_to_core(std::size_t rank) {
  static const std::vector<int> cores = allowed_cores();  // before any thread is pinned: the main thread's
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[rank % cores.size()], &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace rehearse
