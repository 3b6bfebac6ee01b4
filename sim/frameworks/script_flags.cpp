#include "frameworks/script_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "base/error.h"
#include "frameworks/launcher_words.h"
#include "frameworks/megatron_options.h"
#include "frameworks/shell_environment.h"
#include "frameworks/shell_run.h"
#include "frameworks/slurm_job.h"

namespace rehearse {

namespace {

// Flags that only a training run takes.
constexpr std::array kOfTraining = {"--num-layers",           "--hidden-size",
                                    "--micro-batch-size",     "--global-batch-size",
                                    "--hybrid-layer-pattern", "--hybrid-override-pattern"};
// Launcher flags that the plan needs, each with its name in torchrun. Other flags are the launcher's own.
struct LauncherFlag {
  const char* name;
  const char* of_torchrun;
};
constexpr std::array kOfLauncher = {
    LauncherFlag{"--nproc-per-node", "--nproc-per-node"}, LauncherFlag{"--nnodes", "--nnodes"},
    LauncherFlag{"--num-gpus", "--nproc-per-node"}, LauncherFlag{"--num-nodes", "--nnodes"},  // deepspeed
    LauncherFlag{"--num-processes", "--nproc-per-node"}};                                     // accelerate
constexpr std::array kShow = {"echo", "printf", "cat", "tee", "logger", "exec_echo"};

bool is_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") && std::isalpha(static_cast<unsigned char>(word[2])) != 0;
}

std::string name_of(const std::string& flag) {
  return flag.substr(0, flag.find('='));
}

std::string dashed(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

const char* flag_of_launcher(const std::string& name) {
  const auto* const found =
      std::ranges::find_if(kOfLauncher, [&](const LauncherFlag& each) { return dashed(name) == each.name; });
  return found == kOfLauncher.end() ? nullptr : found->of_torchrun;
}

// A command with enough options of Megatron-LM trains, even where its sizes stand in words that nobody set.
bool trains(const ShellCommand& command) {
  constexpr std::ptrdiff_t kFewOptions = 4;
  const auto is_option = [](const ShellWord& word) {
    return is_flag(word.text) && find_megatron_option(name_of(word.text)) != nullptr;
  };
  return std::ranges::any_of(command.words,
                             [](const ShellWord& word) {
                               return is_flag(word.text) &&
                                      std::ranges::count(kOfTraining, dashed(name_of(word.text))) > 0;
                             }) ||
         std::ranges::count_if(command.words, is_option) >= kFewOptions;
}

// Whether a program of Megatron-LM trains another network than a decoder.
bool trains_another_network(const std::string& program) {
  const std::string name = program.substr(program.find_last_of('/') + 1);
  return std::ranges::any_of(std::array{"_bert", "_t5", "_retro", "_vision", "_ict", "_vlm", "multimodal"},
                             [&](const char* part) { return name.find(part) != std::string::npos; });
}

bool has_flags(const ShellCommand& command) {
  return std::ranges::count(kShow, command.words.front().text) == 0 &&
         std::ranges::any_of(command.words, [](const ShellWord& word) { return is_flag(word.text); });
}

// The parts between blanks; $(nproc --all) is one.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char letter : text) {
    if (letter == '(' || letter == '{') ++depth;
    if ((letter == ')' || letter == '}') && depth > 0) --depth;
    const bool is_blank = letter == ' ' || letter == '\t' || letter == '\n';
    if (!is_blank || depth > 0)
      parts.back() += letter;
    else if (!parts.back().empty())
      parts.emplace_back();
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// Elements of an array may hold a flag and its value in one pair of quotes.
std::vector<ShellWord> separate(const std::vector<ShellWord>& words) {
  std::vector<ShellWord> all;
  for (const ShellWord& word : words) {
    if (!is_flag(word.text) || word.text.find(' ') == std::string::npos) {
      all.push_back(word);
      continue;
    }
    for (std::string& part : parts_of(word.text)) all.push_back({std::move(part), word.line, word.branch});
  }
  return all;
}

// Words before the training program belong to its launcher. The program is the first Python file that is no
// flag's value.
std::size_t end_of_launcher(const std::vector<ShellWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_value =
        i > 0 && is_flag(words[i - 1].text) && words[i - 1].text.find('=') == std::string::npos;
    if (words[i].text.ends_with(".py") && !is_flag(words[i].text) && !is_value) return i;
  }
  return 0;
}

std::string condition_of(const BranchPointer& branch) {
  return branch ? fmt::format("\"{}\" of line {}", branch->condition, branch->line) : "";
}

// A variable that is not set may hold any words.
bool is_unknown(const std::string& word) {
  return word.starts_with('$') && word.size() > 1;
}

// Programs whose options look like those of Megatron-LM, and train with DeepSpeed.
void refuse_other_programs(const ShellCommand& command, const std::string& file) {
  for (const ShellWord& word : command.words)
    if (word.text.starts_with("openrlhf."))
      throw InputError({file, fmt::format("line {}", word.line), "trains with OpenRLHF, which is not read",
                        "found " + word.text.substr(0, 200),
                        "the same settings as flags: rehearse help simulate"});
}

bool takes_value(const std::string& flag) {
  const MegatronOption* const option = find_megatron_option(flag);
  return option == nullptr || option->takes != OptionTakes::nothing;
}

// An unknown flag may be a switch. The words of $(...) behind it are then options, and so are those of a
// variable that a command sets.
bool may_hold_options(const ShellWord& word, const std::string& flag) {
  return find_megatron_option(flag) == nullptr &&
         ((word.branch && word.branch->sets) || (word.text.starts_with("$(") && word.text.ends_with(')')));
}

void add_flags(const ShellCommand& command, const std::string& file, ScriptFlags& found) {
  const auto mark = [&](ScriptFlag& flag, const BranchPointer& branch) {
    if (!branch || !flag.condition.empty()) return;
    flag.condition = condition_of(branch);
    flag.decides = words_that_decide(branch->condition, file);
  };
  const std::vector<ShellWord> words = separate(command.words);
  const std::size_t program = end_of_launcher(words);
  bool open = false;  // a flag takes the next word
  for (std::size_t i = 0; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    const BranchPointer& branch = word.branch ? word.branch : command.branch;
    const bool is_short = word.text.size() > 1 && word.text[0] == '-' &&
                          std::isalpha(static_cast<unsigned char>(word.text[1])) != 0;
    if (i == program && program > 0 && trains_another_network(word.text))
      found.notes.push_back(fmt::format(
          "line {}: {} trains another network: a decoder of the same size is counted", word.line, word.text));
    if ((i == program && program > 0) || is_short) {
      open = false;
      continue;
    }
    if (is_flag(word.text)) {
      const std::size_t equals = word.text.find('=');
      const bool of_program = i > program || program == 0;
      const char* const launcher = flag_of_launcher(name_of(word.text));
      open = of_program || launcher != nullptr;
      if (!open) continue;
      found.flags.push_back({of_program ? name_of(word.text) : std::string(launcher), {}, word.line});
      mark(found.flags.back(), branch);
      if (equals != std::string::npos) found.flags.back().values.push_back(word.text.substr(equals + 1));
      continue;
    }
    const bool is_value = open && found.flags.back().values.empty() && takes_value(found.flags.back().name);
    const bool is_open = is_unknown(word.text) && i > program;
    if (is_open && (!is_value || may_hold_options(word, found.flags.back().name)))
      found.notes.push_back(note_on_unknown(word, file));
    if (open && (!is_open || is_value)) {
      ScriptFlag& flag = found.flags.back();
      flag.values.push_back(word.text);
      mark(flag, branch);
    }
  }
}

bool same_words(const ShellCommand& a, const ShellCommand& b) {
  return std::ranges::equal(a.words, b.words, {}, &ShellWord::text, &ShellWord::text);
}

// The first command, where several train the same.
const ShellCommand* the_command(const std::vector<const ShellCommand*>& candidates, const std::string& file) {
  if (candidates.empty()) return nullptr;
  const ShellCommand& first = *candidates.front();
  std::vector<Violation> violations;
  for (const ShellCommand* each : candidates) {
    if (each->branch)
      violations.push_back({file, fmt::format("line {}", each->line),
                            "the training command is in a branch whose condition the text does not decide",
                            condition_of(each->branch), words_that_decide(each->branch->condition, file)});
    else if (!same_words(first, *each) && violations.empty())
      violations.push_back(
          {file, fmt::format("line {}", each->line), "the text has a second training command",
           fmt::format("the first begins in line {}", first.line), "a file with one of them"});
  }
  const bool alike =
      std::ranges::all_of(candidates, [&](const auto* each) { return same_words(first, *each); });
  if (!violations.empty() && (!alike || candidates.size() == 1)) throw InputError(std::move(violations));
  return &first;
}

// Reads flags from a file of assignments, which another script would read.
void add_variables(const ShellRun& run, const std::string& file, ScriptFlags& found) {
  std::vector<std::string> names;
  for (const auto& [name, value] : run.variables) {
    ShellCommand command;
    for (const ShellText& element : value)
      for (const ShellPiece& piece : element) {
        std::istringstream words(piece.text);
        for (std::string word; words >> word;) command.words.push_back({word, piece.line, piece.branch});
      }
    if (command.words.empty() || !has_flags(command)) continue;
    add_flags(command, file, found);
    names.push_back(name);
  }
  if (!names.empty())
    found.notes.push_back("the text has no command: flags are read from its variables " + join(names));
}

}  // namespace

void add_environment(const std::vector<SetVariable>& variables, ScriptFlags& found) {
  add_environment(variables, found.others, found.notes);
  const bool is_said = std::ranges::any_of(
      found.flags, [](const ScriptFlag& flag) { return dashed(flag.name) == "--attention-backend"; });
  if (unfuses_attention(variables) && !is_said)
    found.flags.push_back({"--attention-backend", {"unfused"}, 0, "", "", "", true});
}

ScriptFlags script_flags(const std::string& text, const std::string& file, const ShellInputs& inputs) {
  const SlurmJob job = slurm_job(text);
  ShellInputs with_job = inputs;
  with_job.environment.merge(job.environment());
  ShellRun run = shell_run(text, file, with_job);
  std::vector<const ShellCommand*> training, others;
  std::vector<const ShellCommand*> bare;  // lines of a file of arguments
  for (const ShellCommand& command : run.commands) {
    if (!has_flags(command)) continue;
    if (is_flag(command.words.front().text))
      bare.push_back(&command);
    else
      (trains(command) ? training : others).push_back(&command);
  }
  // `ray stop --force` beside a command whose sizes stand in a file that is not read.
  const auto has_no_option = [](const ShellCommand* command) {
    return std::ranges::none_of(command->words, [](const ShellWord& word) {
      return is_flag(word.text) && find_megatron_option(name_of(word.text)) != nullptr;
    });
  };
  if (!std::ranges::all_of(others, has_no_option)) std::erase_if(others, has_no_option);
  ScriptFlags found;
  found.notes = std::move(run.notes);
  found.written = std::move(run.written);
  const bool is_list = training.empty() && !bare.empty();
  // The script ends itself before it trains: commands of other programs are no training commands.
  const bool is_ended = training.empty() && run.exit_line > 0 && std::ranges::all_of(others, has_no_option);
  const SlurmJob submitted = run.job.empty() ? job : slurm_job(run.job);
  if (const ShellCommand* command =
          is_list || is_ended ? nullptr : the_command(training.empty() ? others : training, file)) {
    refuse_other_programs(*command, file);
    add_flags(*command, file, found);
    add_environment(environment_of(run, *command), found);
    add_launcher(run, *command, end_of_launcher(command->words), submitted, found);
    for (const ShellCommand* line : bare)
      found.notes.push_back(fmt::format("line {}: {} and what follows belong to no command: ignored",
                                        line->line, line->words.front().text));
  } else if (is_list) {
    for (const ShellCommand* line : bare) add_flags(*line, file, found);
    add_environment(environment_of(run, {}), found);
    add_job(submitted, found);
  } else if (run.exit_line > 0) {
    const bool names = run.exit_condition.find('$') != std::string::npos;
    throw InputError(
        {file, fmt::format("line {}", run.exit_line), "the script ends here, before a training command",
         run.exit_condition.empty() ? "" : fmt::format("\"{}\" holds", run.exit_condition),
         names ? words_that_decide(run.exit_condition, file)
               : fmt::format("rehearse import {} NAME=VALUE ARGUMENT ..., with the words that it asks for",
                             file)});
  } else {
    add_variables(run, file, found);
    add_environment(environment_of(run, {}), found);
    add_job(submitted, found);
  }
  return found;
}

std::string note_on_unknown(const ShellWord& word, const std::string& file) {
  if (word.branch && word.branch->sets)
    return fmt::format(
        "line {}: the words of {} are not known ({}): any option may be among them; {} decides", word.line,
        word.text, condition_of(word.branch), words_that_decide(word.branch->condition, file));
  if (word.text.find("$(") != std::string::npos || word.text.find('`') != std::string::npos)
    return fmt::format("line {}: the words that {} prints are not known: any option may be among them",
                       word.line, word.text);
  return fmt::format("line {}: {} is not set in the text: counted as empty", word.line, word.text);
}

// Names variables such as "$AC" and "${AC:-full}". "$3" needs two arguments before it.
std::string words_that_decide(const std::string& text, const std::string& file) {
  constexpr int kMaxNamed = 20;
  std::vector<std::string> words;
  int arguments = 0;
  for (std::size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at + 1)) {
    std::size_t begin = at + 1;
    if (begin < text.size() && text[begin] == '{') ++begin;
    if (text.compare(begin, 7, "oc.env:") == 0) begin += 7;  // of OmegaConf
    std::size_t end = begin;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    const std::string name = text.substr(begin, end - begin);
    if (name.empty()) continue;
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0)
      arguments = std::max(arguments, name.size() > 2 ? kMaxNamed : std::min(kMaxNamed, std::stoi(name)));
    else if (std::ranges::find(words, name + "=VALUE") == words.end())
      words.push_back(name + "=VALUE");
  }
  for (int i = 1; i <= arguments; ++i) words.push_back(fmt::format("VALUE{}", i));
  if (words.empty()) return "the flag of this command";
  return fmt::format("rehearse import {} {}", file, join(words, " "));
}

}  // namespace rehearse
