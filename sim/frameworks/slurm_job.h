// How many nodes and GPUs does the head of a batch script ask Slurm for?
#pragma once

#include <map>
#include <string>

namespace rehearse {

struct SlurmJob {
  int line = 0;  // of the last request that counts; 0: the script asks for nothing
  long nodes = 1, gpus_per_node = 0, tasks_per_node = 0, tasks = 0;
  std::string open_nodes;  // the number of nodes, where it is a word that the text does not decide

  // GPUs of a node: as requested, or one for each of several tasks.
  long gpus_of_node() const;
  // Variables that Slurm sets in the job's environment.
  std::map<std::string, std::string> environment() const;
};

// Reads lines "#SBATCH --nodes=4", and their short forms.
SlurmJob slurm_job(const std::string& script);

}  // namespace rehearse
