// Source: AMD-AGI/Primus 0164c8c1, examples/run_pretrain.sh, run_slurm_pretrain.sh, run_local_pretrain.sh,
// runner/README.md.
#include "frameworks/primus_script.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.h"
#include "base/utf8.h"
#include "frameworks/launcher_words.h"
#include "frameworks/script_flags.h"
#include "frameworks/shell_environment.h"
#include "frameworks/shell_run.h"

namespace rehearse {

namespace {

constexpr std::array kLaunchers = {"run_pretrain.sh",           "run_slurm_pretrain.sh",
                                   "run_local_pretrain.sh",     "run_pretrain_cli.sh",
                                   "run_slurm_pretrain_cli.sh", "run_local_pretrain_cli.sh"};
constexpr const char* kCli = "primus-cli";
constexpr const char* kExperiment = "EXP";

// `bash -c` within a container has its command in one word.
std::vector<ShellWord> separate(const ShellCommand& command) {
  std::vector<ShellWord> all;
  for (const ShellWord& word : command.words) {
    std::istringstream parts(word.text);
    for (std::string part; parts >> part;) all.push_back({part, word.line, word.branch});
  }
  return all;
}

// The launcher's place; the number of words where there is none.
std::size_t launcher_of(const std::vector<ShellWord>& words) {
  const auto found = std::ranges::find_if(words, [](const ShellWord& word) {
    const std::string name = last_step(word.text);
    return name == kCli || std::ranges::find(kLaunchers, name) != kLaunchers.end();
  });
  return static_cast<std::size_t>(found - words.begin());
}

// Other programs have a run_pretrain.sh too: Primus's reads the variable EXP.
bool is_primus(const ShellCommand& command, const ShellRun& run) {
  const std::vector<ShellWord> words = separate(command);
  const std::size_t at = launcher_of(words);
  if (at == words.size()) return false;
  const auto names = [&](const char* word) {
    return std::any_of(words.begin() + static_cast<std::ptrdiff_t>(at), words.end(),
                       [&](const ShellWord& each) { return each.text == word; });
  };
  if (last_step(words[at].text) == kCli) return names("train");
  const auto sets = [](const ShellWord& word) { return word.text.starts_with("EXP="); };
  return run.variables.contains(kExperiment) || std::ranges::any_of(command.environment, sets) ||
         std::ranges::any_of(words, sets);
}

// A value of the run. `words`: of a command in one word, such as `bash -c "EXP=a.yaml ..."`.
std::string variable(const std::string& name, const ShellRun& run, const ShellCommand& command,
                     const std::vector<ShellWord>& words) {
  for (const ShellWord& word : words)
    if (word.text.starts_with(name + "=") && word.text.find('$') == std::string::npos)
      return word.text.substr(name.size() + 1);
  return variable_of(name, run, command);
}

// The map of overrides of the module that trains.
std::string overrides_of(const Json& yaml) {
  if (yaml.is_object() && yaml.contains("modules") && yaml["modules"].is_object())
    for (const auto& [name, module] : yaml["modules"].items())
      if (module.is_object() && module.contains("framework")) return "modules." + name + ".overrides.";
  return "modules.pre_trainer.overrides.";
}

void set(YamlText& settings, const std::string& path, const std::string& value) {
  set_at_path(settings.json, path, plain_yaml(value));
  std::string pointer = "/" + path;
  std::ranges::replace(pointer, '.', '/');
  settings.lines.erase(pointer);  // which would be one of the file
}

// "--name value", "--name=value", "name=value" and "--name" behind the launcher. Names with dots are those of
// sections.
void add_words(const std::vector<ShellWord>& words, std::size_t begin, const std::string& file,
               PrimusScript& found) {
  const std::string overrides = overrides_of(found.settings.json);
  const auto is_name = [](const std::string& word) { return word.starts_with("--") && word.size() > 2; };
  for (std::size_t i = begin; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    const std::size_t equals = word.text.find('=');
    if (!is_name(word.text) && equals == std::string::npos) continue;
    if (word.branch)
      throw InputError({file, fmt::format("line {}", word.line),
                        "has a setting in a branch whose condition the text does not decide", word.text,
                        words_that_decide(word.branch->condition, file)});
    std::string name = word.text.substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    std::ranges::replace(name, '-', '_');
    std::string value = equals == std::string::npos ? "true" : word.text.substr(equals + 1);
    if (equals == std::string::npos && i + 1 < words.size() && !is_name(words[i + 1].text))
      value = words[++i].text;
    if (name == "config" || name == "exp") continue;
    if (name.empty() || name.find_first_of("/$") != std::string::npos)
      found.notes.push_back(
          fmt::format("line {}: {} is ignored: it is no setting", word.line, word.text.substr(0, 100)));
    else
      set(found.settings, overrides + name, value);
  }
}

// `primus-cli slurm srun -N 4 -- train ...`: the nodes of srun, else of the job around it. "" where neither
// states them.
std::string nodes_of_slurm(const std::vector<ShellWord>& words, std::size_t launcher, std::size_t begin,
                           const std::string& script) {
  std::vector<std::string> texts;
  for (std::size_t i = launcher + 1; i < begin; ++i) texts.push_back(words[i].text);
  if (std::ranges::find(texts, "slurm") == texts.end()) return "";
  SlurmJob unsaid = slurm_job(script);
  if (unsaid.line == 0) unsaid.nodes = 0;
  const SlurmJob step = slurm_step(unsaid, texts, words[launcher].line);
  if (!step.open_nodes.empty()) return step.open_nodes;
  return step.nodes > 0 ? std::to_string(step.nodes) : "";
}

}  // namespace

bool starts_primus(const std::string& script, const std::string& file) {
  const bool may_start = script.find(kCli) != std::string::npos ||
                         script.find("pretrain.sh") != std::string::npos ||
                         script.find("pretrain_cli.sh") != std::string::npos;
  if (!may_start || !is_utf8(script)) return false;
  try {
    const ShellRun run = shell_run(script, file);
    return std::ranges::any_of(run.commands, [&](const ShellCommand& each) { return is_primus(each, run); });
  } catch (const InputError&) {
    return false;  // the reader of scripts names the fault
  }
}

PrimusScript primus_script(const std::string& script, const std::string& file, const ShellInputs& inputs) {
  if (!is_utf8(script)) throw InputError({file, "", "must be text in UTF-8", "", ""});
  const ShellRun run = shell_run(script, file, inputs);
  const auto command =
      std::ranges::find_if(run.commands, [&](const ShellCommand& each) { return is_primus(each, run); });
  if (command == run.commands.end())
    throw InputError(
        {file, "", "has no command that starts Primus", "",
         "a file with examples/run_pretrain.sh, or primus-cli ... train pretrain --config FILE"});
  const std::vector<ShellWord> words = separate(*command);
  const std::size_t launcher = launcher_of(words);
  PrimusScript found{"", {}, environment_of(run, *command), run.notes, inputs};
  std::size_t begin = launcher + 1;
  if (last_step(words[launcher].text) == kCli)
    while (begin < words.size() && words[begin].text != "train") ++begin;
  found.experiment = variable(kExperiment, run, *command, words);
  for (std::size_t i = begin; i < words.size(); ++i)
    if (words[i].text == "--config" && i + 1 < words.size())
      found.experiment = words[i + 1].text;
    else if (words[i].text.starts_with("--config="))
      found.experiment = words[i].text.substr(9);
  const std::string name = last_step(found.experiment);
  const std::string line = fmt::format("line {}", command->line);
  if (found.experiment.empty() || name.find('$') != std::string::npos)
    throw InputError({file, line, "starts Primus with an experiment that the text does not name",
                      found.experiment.empty() ? "" : "found " + found.experiment,
                      found.experiment.empty()
                          ? fmt::format("rehearse import {} EXP=FILE.yaml --source FILE.yaml", file)
                          : words_that_decide(found.experiment, file)});
  const auto given = inputs.files.find(name);
  if (given == inputs.files.end())
    throw InputError(
        {file, line, "starts an experiment of Primus, whose file is not read", "found " + found.experiment,
         fmt::format("rehearse import {} --source {}, or rehearse import {}", file, name, name)});
  found.settings = read_yaml(given->second, name);
  if (!found.settings.json.is_object()) found.settings.json = Json::object();
  add_words(words, begin, file, found);
  const std::string overrides = overrides_of(found.settings.json);
  std::string nodes = nodes_of_slurm(words, launcher, begin, script);
  if (nodes.empty()) nodes = variable("NNODES", run, *command, words);
  const std::string gpus = variable("GPUS_PER_NODE", run, *command, words);
  set(found.settings, overrides + "nnodes", nodes.empty() ? "1" : nodes);  // the launcher's defaults
  set(found.settings, overrides + "nproc_per_node", gpus.empty() ? "8" : gpus);
  for (const auto& [variable, value] : run.variables)
    if (value.size() == 1 && !branch_of(value.front()))
      found.shell.variables.emplace(variable, flat(value.front()));
  found.notes.push_back(fmt::format(
      "{} is the experiment that the script starts, with the script's words in place of its own", name));
  return found;
}

}  // namespace rehearse
