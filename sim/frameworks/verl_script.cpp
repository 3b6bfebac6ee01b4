#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "frameworks/other_yaml.h"
#include "frameworks/script_flags.h"
#include "frameworks/shell_environment.h"
#include "frameworks/shell_run.h"

namespace rehearse {

namespace {

bool is_module(const std::string& word) {
  return (word.starts_with("verl.") || word.starts_with("recipe.")) && word.find('=') == std::string::npos;
}

// Whether the module trains; other modules generate, score or convert.
bool is_trainer_module(const std::string& module) {
  const std::string last = module.substr(module.find_last_of('.') + 1);
  const auto has = [&](const char* part) { return last.find(part) != std::string::npos; };
  return has("sft_trainer") || (has("main") && !has("generation") && !has("eval"));
}

std::size_t module_of(const ShellCommand& command) {
  const auto found = std::ranges::find_if(command.words, [](const ShellWord& word) {
    return is_module(word.text) && is_trainer_module(word.text);
  });
  return static_cast<std::size_t>(found - command.words.begin());
}

// The only command that starts a trainer module. InputError where it stands in an undecided branch.
const ShellCommand& training_command(const ShellRun& run, const std::string& file) {
  const ShellCommand* first = nullptr;
  for (const ShellCommand& each : run.commands) {
    if (module_of(each) == each.words.size()) continue;
    if (each.branch)
      throw InputError({file, fmt::format("line {}", each.line),
                        "the training command is in a branch whose condition the text does not decide",
                        fmt::format("\"{}\" of line {}", each.branch->condition, each.branch->line),
                        words_that_decide(each.branch->condition, file)});
    if (first != nullptr)
      throw InputError({file, fmt::format("line {}", each.line), "the text has a second training command",
                        fmt::format("the first begins in line {}", first->line), "a file with one of them"});
    first = &each;
  }
  if (first != nullptr) return *first;
  throw InputError({file, "", "has no command that starts a trainer of verl", "",
                    "a file with python3 -m verl.trainer.main_ppo NAME=VALUE ..."});
}

void require_decided(const ShellWord& word, const std::string& file) {
  if (word.branch)
    throw InputError({file, fmt::format("line {}", word.line),
                      "has a setting in a branch whose condition the text does not decide",
                      word.text.substr(0, 200), words_that_decide(word.branch->condition, file)});
}

void set(YamlText& settings, std::string path, const std::string& value, int line) {
  set_at_path(settings.json, path, plain_yaml(value));  // "optim=fsdp", a file of settings, gives way
  std::ranges::replace(path, '.', '/');
  settings.lines["/" + path] = line;
}

// "--config-name x" and "--config-name=x".
std::string option(const std::vector<ShellWord>& words, std::size_t begin, const std::string& name) {
  for (std::size_t i = begin; i < words.size(); ++i) {
    if (words[i].text.starts_with(name + "=")) return words[i].text.substr(name.size() + 1);
    if (words[i].text == name && i + 1 < words.size()) return words[i + 1].text;
  }
  return "";
}

// Reads the file of settings that the words override. The reader knows the defaults of verl's own files.
void begin_with(const std::string& name, const std::string& module, const ShellInputs& inputs,
                YamlText& settings, std::vector<std::string>& notes) {
  static const std::set<std::string> own = {"", "ppo_trainer", "ppo_megatron_trainer", "sft_trainer",
                                            "sft_trainer_engine"};
  std::string bare = name.substr(name.find_last_of('/') + 1);
  if (bare.ends_with(".yaml")) bare.resize(bare.size() - 5);
  if (const auto given = inputs.files.find(bare + ".yaml"); given != inputs.files.end())
    settings = read_yaml(given->second, bare + ".yaml");
  else if (!own.contains(bare))
    notes.push_back(
        fmt::format("--config-name {} is not read: settings that the command leaves out are counted "
                    "as verl's own files have them; pass --source {}.yaml",
                    name, bare));
  if (!settings.json.is_object()) settings.json = Json::object();
  const bool is_megatron = bare.find("megatron") != std::string::npos;
  if (is_megatron && at_path(settings.json, "actor_rollout_ref.actor.strategy") == nullptr)
    set(settings, "actor_rollout_ref.actor.strategy", "megatron", 0);
  if (module.ends_with("sft_trainer") && !module.ends_with("fsdp_sft_trainer") &&
      at_path(settings.json, "engine.strategy") == nullptr)
    set(settings, "engine.strategy", is_megatron ? "megatron" : "fsdp", 0);
}

}  // namespace

bool starts_verl(const std::string& script) {
  return script.find("verl.trainer.") != std::string::npos ||
         script.find("verl.experimental.") != std::string::npos ||
         script.find("actor_rollout_ref.actor.") != std::string::npos;
}

VerlScript verl_script(const std::string& script, const std::string& file, const ShellInputs& inputs) {
  if (!is_utf8(script)) throw InputError({file, "", "must be text in UTF-8", "", ""});
  const ShellRun run = shell_run(script, file, inputs);
  const ShellCommand& command = training_command(run, file);
  const std::size_t module = module_of(command);
  VerlScript found = {{}, environment_of(run, command), run.notes};
  auto& [settings, variables, notes] = found;
  begin_with(option(command.words, module, "--config-name"), command.words[module].text, inputs, settings,
             notes);
  for (std::size_t i = module + 1; i < command.words.size(); ++i) {
    const ShellWord& word = command.words[i];
    const std::size_t equals = word.text.find('=');
    std::string path = word.text.substr(0, equals);
    path.erase(0, path.find_first_not_of("+~"));
    if (word.text.starts_with('$') && equals == std::string::npos) {
      notes.push_back(note_on_unknown(word, file));
      continue;
    }
    if (equals == std::string::npos || path.empty() || path.find_first_of("-$/ ") != std::string::npos)
      continue;
    require_decided(word, file);
    set(settings, path, word.text.substr(equals + 1), word.line);
  }
  for (const auto& [name, path] : {std::pair{"--nproc_per_node", "trainer.n_gpus_per_node"},
                                   {"--nproc-per-node", "trainer.n_gpus_per_node"},
                                   {"--nnodes", "trainer.nnodes"}})  // torchrun's
    if (const std::string value = option(
            {command.words.begin(), command.words.begin() + static_cast<std::ptrdiff_t>(module)}, 0, name);
        !value.empty())
      set(settings, path, value, command.line);
  return found;
}

}  // namespace rehearse
