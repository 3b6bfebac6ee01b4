#include "frameworks/slurm_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace rehearse {

namespace {

constexpr long kMaxCount = 1'000'000;

// Reads "4", "2-4" (the fewest) and "8(x4)"; another word is 0, and so is a number that no job has.
long count_of(const std::string& word) {
  const long count = std::strtol(word.c_str(), nullptr, 10);
  return count < 0 || count > kMaxCount ? 0 : count;
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
    if (value.find('-') != std::string::npos && count_of(value) > 0)
      job.notes.push_back(
          fmt::format("line {}: {} {} is a range of nodes: the fewest, {}, are counted; --gpus "
                      "sets the GPUs",
                      line, name, value, job.nodes));
  } else if (is("--ntasks-per-node", "--tasks-per-node")) {
    job.tasks_per_node = count_of(value);
  } else if (is("--ntasks", "-n")) {
    job.tasks = count_of(value);
  } else if (is("--gpus", "-G")) {
    job.gpus = count_of(value.substr(value.find_last_of(':') + 1));
  } else if (name == "--gpus-per-node") {
    job.gpus_per_node = count_of(value.substr(value.find_last_of(':') + 1));
  } else if (name == "--gres") {
    job.gpus_per_node = std::max(job.gpus_per_node, gpus_of(value));
  } else {
    return;
  }
  job.line = line;
  if (value.find('$') != std::string::npos && job.open_nodes != value)
    job.notes.push_back(fmt::format("line {}: {} {} is not decided: it does not count; --gpus sets the GPUs",
                                    line, name, value));
}

// "--nodes=4", "--nodes 4", "-N 4" and "-N4".
void take_words(const std::vector<std::string>& words, int line, SlurmJob& job) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const bool is_short = word.size() > 2 && word[0] == '-' && word[1] != '-';
    if (is_short)
      take(word.substr(0, 2), word.substr(word[2] == '=' ? 3 : 2), line, job);
    else if (equals != std::string::npos)
      take(word.substr(0, equals), word.substr(equals + 1), line, job);
    else if (i + 1 < words.size())
      take(word, words[i + 1], line, job);
  }
}

}  // namespace

std::pair<long, long> SlurmJob::processes() const {
  if (gpus_per_node > 0) return {gpus_per_node, nodes};
  if (tasks_per_node > 1) return {tasks_per_node, nodes};
  if (!open_nodes.empty()) return {0, nodes};
  if (gpus > 0) return {gpus, 1};
  return {tasks > nodes ? tasks : 0, 1};
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
    take_words(words, number, job);
  }
  return job;
}

// srun starts a process for each task. One task on each node may start the processes of the node itself.
SlurmJob slurm_step(const SlurmJob& job, const std::vector<std::string>& words, int line) {
  SlurmJob said;
  said.nodes = 0;
  take_words(words, line, said);
  SlurmJob step = job;
  step.line = line;
  step.notes.insert(step.notes.end(), said.notes.begin(), said.notes.end());
  if (said.nodes > 0) {
    step.nodes = said.nodes;
    step.open_nodes = said.open_nodes;
    if (said.nodes != job.nodes) step.gpus = 0;
  }
  if (said.gpus_per_node > 0) step.gpus_per_node = said.gpus_per_node;
  if (said.gpus > 0) step.gpus = said.gpus, step.gpus_per_node = 0;
  if (said.tasks_per_node > 1) step.gpus_per_node = step.tasks_per_node = said.tasks_per_node;
  if (said.tasks > std::max(1L, step.nodes) && said.tasks_per_node == 0) {
    step.open_nodes.clear();
    step.nodes = 1;
    step.gpus_per_node = said.tasks;
  }
  return step;
}

}  // namespace rehearse
