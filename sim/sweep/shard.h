// Which part of a sweep does this machine, Slurm array task or MPI rank take?
#pragma once

#include <functional>
#include <string>

#include "sweep/grid.h"

namespace rehearse {

// Every n-th point, from the i-th.
struct Shard {
  int index = 1;  // from 1
  int count = 1;

  bool has(Point point) const { return point % count == index - 1; }
};

// The value of an environment variable; null where it is not set.
using Environment = std::function<const char*(const char*)>;

// "2/8", or "auto": the task of a Slurm array combined with the rank from torchrun, mpirun or srun.
// InputError unless 1 <= index <= count, and for "auto" without such variables.
Shard parse_shard(const std::string& text, const Environment& environment);

}  // namespace rehearse
