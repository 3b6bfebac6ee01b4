#include "frameworks/launcher_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "frameworks/megatron_options.h"

namespace rehearse {

namespace {

struct Processes {
  std::string of_node, nodes = "1";
  int line = 0;
};

bool is_count(const std::string& word) {
  return !word.empty() && word.size() < 8 && word.find_first_not_of("0123456789") == std::string::npos;
}

ScriptFlag* flag_named(const std::string& name, ScriptFlags& found) {
  const auto flag = std::ranges::find_if(found.flags, [&](const ScriptFlag& each) {
    const MegatronOption* const option = find_megatron_option(each.name);
    return option != nullptr && option->name() == name;
  });
  return flag == found.flags.end() ? nullptr : &*flag;
}

// The words of the launcher.
class Launcher {
 public:
  // Where no Python file is the program, Python's module is.
  Launcher(const ShellCommand& command, std::size_t program) : words_(command.launcher) {
    const std::size_t end = command.launcher.size() + program;
    for (const ShellWord& word : command.words) {
      if (program > 0 && words_.size() == end) break;
      words_.push_back(word);
      if (program == 0 && last_step(word.text).starts_with("python")) break;
    }
  }

  // The word behind the program of that name, as all those behind it.
  std::size_t find(std::initializer_list<const char*> names) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (std::ranges::find(names, last_step(words_[i].text)) != names.end()) return i + 1;
    return 0;
  }

  // Of "--name value" or "--name=value".
  std::string value(std::size_t begin, std::initializer_list<const char*> names) const {
    for (std::size_t i = begin; i < words_.size(); ++i)
      for (const std::string name : names) {
        if (words_[i].text == name && i + 1 < words_.size()) return words_[i + 1].text;
        if (words_[i].text.starts_with(name + "=")) return words_[i].text.substr(name.size() + 1);
      }
    return "";
  }

  std::vector<std::string> texts(std::size_t begin) const {
    std::vector<std::string> all;
    for (std::size_t i = begin; i < words_.size(); ++i) all.push_back(words_[i].text);
    return all;
  }

  // Python starts the program once for each process; a script would start more.
  bool starts_python() const {
    return std::ranges::any_of(
        words_, [](const ShellWord& word) { return last_step(word.text).starts_with("python"); });
  }

 private:
  std::vector<ShellWord> words_;
};

// "localhost:0,1,2,3" and "host1:0,1@host2:0,1"; none where a host has all its GPUs.
std::string included(const std::string& hosts) {
  long count = 0;
  std::istringstream parts(hosts);
  for (std::string part; std::getline(parts, part, '@');) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) return "";
    count += 1 + std::count(part.begin() + static_cast<std::ptrdiff_t>(colon), part.end(), ',');
  }
  return count > 0 ? std::to_string(count) : "";
}

// MindSpore's msrun starts worker_num processes, of which local_worker_num on each node.
Processes of_msrun(const Launcher& launcher, std::size_t begin) {
  const std::string all = launcher.value(begin, {"--worker_num"}),
                    local = launcher.value(begin, {"--local_worker_num"});
  if (!is_count(all) || !is_count(local)) return {all.empty() ? local : all};
  const long workers = std::stol(all), of_node = std::stol(local);
  if (of_node < 1 || workers % of_node != 0) return {all};
  return {local, std::to_string(workers / of_node)};
}

std::optional<Processes> processes_of(const ShellRun& run, const ShellCommand& command,
                                      const Launcher& launcher) {
  if (const std::size_t at = launcher.find({"msrun"}); at > 0) return of_msrun(launcher, at);
  if (const std::size_t at = launcher.find({"mpirun", "mpiexec", "orterun"});
      at > 0 && launcher.starts_python())
    return Processes{launcher.value(at, {"-np", "--np", "-n", "--n"})};
  if (const std::size_t at = launcher.find({"deepspeed"}); at > 0)
    return Processes{included(launcher.value(at, {"--include", "-i"}))};
  // modelscope/ms-swift, swift/cli/main.py: get_torchrun_args.
  if (last_step(command.words.front().text) == "megatron" && command.words.size() > 1) {
    const std::string nodes = variable_of("NNODES", run, command);
    return Processes{variable_of("NPROC_PER_NODE", run, command), nodes.empty() ? "1" : nodes};
  }
  return {};
}

void add(const Processes& processes, int line, ScriptFlags& found) {
  found.flags.push_back({"--nproc-per-node", {processes.of_node}, line});
  found.flags.push_back({"--nnodes", {processes.nodes}, line});
}

// torchrun's "gpu" is one process for each GPU that the process sees.
void count_visible(const ShellRun& run, const ShellCommand& command, ScriptFlag& flag) {
  if (flag.values.size() != 1 || (flag.values[0] != "gpu" && flag.values[0] != "auto")) return;
  const std::string visible = variable_of("CUDA_VISIBLE_DEVICES", run, command);
  if (visible.empty() || visible.find_first_not_of("0123456789,") != std::string::npos) return;
  flag.values[0] = std::to_string(1 + std::ranges::count(visible, ','));
}

}  // namespace

std::string last_step(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string variable_of(const std::string& name, const ShellRun& run, const ShellCommand& command) {
  for (const ShellWord& word : command.environment)
    if (word.text.starts_with(name + "=")) return word.text.substr(name.size() + 1);
  const auto found = run.variables.find(name);
  if (found == run.variables.end() || found->second.size() != 1) return "";
  return branch_of(found->second.front()) ? "$" + name : flat(found->second.front());
}

void add_job(const SlurmJob& job, ScriptFlags& found) {
  if (found.flags.empty()) return;
  found.notes.insert(found.notes.end(), job.notes.begin(), job.notes.end());
  const auto [of_node, nodes] = job.processes();
  if (of_node == 0 || flag_named("--nproc-per-node", found) != nullptr) return;
  const std::string count = job.open_nodes.empty() ? std::to_string(nodes) : job.open_nodes;
  add({std::to_string(of_node), count}, job.line, found);
}

void add_launcher(const ShellRun& run, const ShellCommand& command, std::size_t program, const SlurmJob& job,
                  ScriptFlags& found) {
  const Launcher launcher(command, program);
  if (ScriptFlag* const said = flag_named("--nproc-per-node", found)) {
    count_visible(run, command, *said);
  } else if (const auto processes = processes_of(run, command, launcher);
             processes && !processes->of_node.empty() && !found.flags.empty()) {
    add(*processes, command.line, found);
  }
  const std::size_t step = launcher.find({"srun"});
  add_job(step > 0 ? slurm_step(job, launcher.texts(step), command.line) : job, found);
}

}  // namespace rehearse
