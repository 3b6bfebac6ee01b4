// Who started this process, and which of its ranks is it?
#pragma once

#include <string>

namespace rehearse::kernels {

// Read from the environment that torchrun, mpirun (Open MPI, or MPICH and Intel MPI) or srun set.
struct Launched {
  int rank = 0, size = 1;
  int local_rank = 0;              // on this machine
  std::string host = "127.0.0.1";  // of rank 0: MASTER_ADDR, or the first of srun's machines
  int port = 29500;                // MASTER_PORT; torchrun's default, or the port of an srun step
  std::string launcher = {};       // "torchrun", "mpirun", "srun"; "": none
  bool has_mpi = false;            // MPI knows the ranks too
  std::string job_id = {};         // "SLURM_JOB_ID 1234": all ids that its launchers gave the job
};

// One rank alone where no launcher started the process. Refused:
// - numbers that contradict each other;
// - an invalid port;
// - several machines, none of which is named.
// Where torchrun's agent uses MASTER_PORT for its own store, the port is the next one.
Launched launched();

// The index of a rank's GPU among the `visible` GPUs of its process. It is the local rank, or 0 where the
// launcher shows each process only its own GPU (srun --gpus-per-task=1). NCCL refuses two ranks on the same
// GPU, unless NCCL_HOSTID declares that they are on different machines.
int gpu_of(const Launched& self, int visible);

}  // namespace rehearse::kernels
