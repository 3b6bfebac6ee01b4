// How many nodes and GPUs does the head of a batch script ask Slurm for?
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rehearse {

struct SlurmJob {
  int line = 0;  // of the last request that counts; 0: the script asks for nothing
  long nodes = 1, gpus_per_node = 0, tasks_per_node = 0, tasks = 0;
  long gpus = 0;           // of all nodes, where the request counts them together
  std::string open_nodes;  // the number of nodes, where it is a word that the text does not decide

  std::vector<std::string> notes;  // on requests that name no single number

  // Processes of a node, and nodes. The first is 0 where the job does not state its GPUs. Those of a node are
  // its GPUs, or one for each of several tasks.
  std::pair<long, long> processes() const;
  // Variables that Slurm sets in the job's environment.
  std::map<std::string, std::string> environment() const;
};

// Reads lines "#SBATCH --nodes=4", and their short forms.
SlurmJob slurm_job(const std::string& script);

// The part of a job that `srun` starts with these words.
SlurmJob slurm_step(const SlurmJob& job, const std::vector<std::string>& words, int line);

}  // namespace rehearse
