// Who started this process, and which of its ranks is it?
#pragma once

#include <string>

namespace rehearse::kernels {

// As torchrun, mpirun (Open MPI, or MPICH and Intel MPI) or srun tell their processes through the
// environment.
struct Launched {
  int rank = 0, size = 1;
  int local_rank = 0;              // on this machine: the number of its GPU
  std::string host = "127.0.0.1";  // of rank 0: MASTER_ADDR
  int port = 29500;                // MASTER_PORT, torchrun's default
  std::string launcher = {};       // "torchrun", "mpirun", "srun"; "": none
  bool has_mpi = false;            // MPI was told of the ranks too
};

// One rank alone where none of them started it. DeviceError for numbers that contradict each other, and for
// several machines without MASTER_ADDR. Where torchrun's agent holds MASTER_PORT for its own notes, the port
// is the next one.
Launched launched();

}  // namespace rehearse::kernels
