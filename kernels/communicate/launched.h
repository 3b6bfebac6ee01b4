// Who started this process, and which of its ranks is it?
#pragma once

#include <string>

namespace rehearse::kernels {

// As torchrun, mpirun (Open MPI, or MPICH and Intel MPI) or srun tell their processes through the
// environment.
struct Launched {
  int rank = 0, size = 1;
  int local_rank = 0;              // on this machine
  std::string host = "127.0.0.1";  // of rank 0: MASTER_ADDR, or the first of srun's machines
  int port = 29500;                // MASTER_PORT; torchrun's default, or one of srun's step alone
  std::string launcher = {};       // "torchrun", "mpirun", "srun"; "": none
  bool has_mpi = false;            // MPI was told of the ranks too
  std::string job_id = {};         // "SLURM_JOB_ID 1234": all ids that its launchers gave the job
};

// One rank alone where none of them started it. Refused: numbers that contradict each other, a port that is
// none, several machines of which none is named. Where torchrun's agent holds MASTER_PORT for its own notes,
// the port is the next one.
Launched launched();

// The number of a rank's GPU among those that its process sees, `visible` of them: its local rank's, or the
// only one, where the launcher shows each process its own (srun --gpus-per-task=1). Two ranks that see the
// same one NCCL refuses, unless NCCL_HOSTID says that they are on different machines.
int gpu_of(const Launched& self, int visible);

}  // namespace rehearse::kernels
