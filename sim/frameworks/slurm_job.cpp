#include "frameworks/slurm_job.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace rehearse {

namespace {

constexpr long kMaxCount = 1'000'000;

// Reads "4", "2-4" (the fewest) and "8(x4)"; another word is 0.
long count_of(const std::string& word) {
  return std::clamp(std::strtol(word.c_str(), nullptr, 10), 0L, kMaxCount);
}

// Reads "gpu:a100:8" and "gpu:8".
long gpus_of(const std::string& resources) {
  const std::size_t gpu = resources.find("gpu");
  if (gpu == std::string::npos) return 0;
  const std::string mine = resources.substr(gpu, resources.find(',', gpu) - gpu);
  const std::size_t colon = mine.find_last_of(':');
  return colon == std::string::npos ? 1 : count_of(mine.substr(colon + 1));
}

void take(const std::string& name, const std::string& value, int line, SlurmJob& job) {
  const auto is = [&](const char* full, const char* brief) { return name == full || name == brief; };
  if (is("--nodes", "-N")) {
    job.nodes = std::max(1L, count_of(value));
    job.open_nodes = count_of(value) == 0 ? value : "";
  } else if (is("--ntasks-per-node", "--tasks-per-node")) {
    job.tasks_per_node = count_of(value);
  } else if (is("--ntasks", "-n")) {
    job.tasks = count_of(value);
  } else if (name == "--gpus-per-node") {
    job.gpus_per_node = count_of(value.substr(value.find_last_of(':') + 1));
  } else if (name == "--gres") {
    job.gpus_per_node = std::max(job.gpus_per_node, gpus_of(value));
  } else {
    return;
  }
  job.line = line;
}

}  // namespace

long SlurmJob::gpus_of_node() const {
  if (gpus_per_node > 0) return gpus_per_node;
  return tasks_per_node > 1 ? tasks_per_node : 0;
}

std::map<std::string, std::string> SlurmJob::environment() const {
  if (line == 0) return {};
  std::map<std::string, std::string> all;
  if (open_nodes.empty()) all["SLURM_NNODES"] = all["SLURM_JOB_NUM_NODES"] = std::to_string(nodes);
  if (tasks_per_node > 0) all["SLURM_NTASKS_PER_NODE"] = std::to_string(tasks_per_node);
  if (tasks > 0 || (tasks_per_node > 0 && open_nodes.empty()))
    all["SLURM_NTASKS"] = all["SLURM_NPROCS"] = std::to_string(tasks > 0 ? tasks : tasks_per_node * nodes);
  if (gpus_per_node > 0)
    all["SLURM_GPUS_PER_NODE"] = all["SLURM_GPUS_ON_NODE"] = std::to_string(gpus_per_node);
  return all;
}

SlurmJob slurm_job(const std::string& script) {
  SlurmJob job;
  std::istringstream lines(script);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.starts_with("#SBATCH")) continue;
    std::istringstream text(line.substr(7));
    std::vector<std::string> words;
    for (std::string word; text >> word && !word.starts_with('#');) words.push_back(word);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      if (equals != std::string::npos)
        take(words[i].substr(0, equals), words[i].substr(equals + 1), number, job);
      else if (i + 1 < words.size())
        take(words[i], words[i + 1], number, job);
    }
  }
  return job;
}

}  // namespace rehearse
