#include "frameworks/script_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "base/error.h"
#include "frameworks/shell_run.h"

namespace rehearse {

namespace {

// Flags that only a training run takes.
constexpr std::array kOfTraining = {"--num-layers",           "--hidden-size",
                                    "--micro-batch-size",     "--global-batch-size",
                                    "--hybrid-layer-pattern", "--hybrid-override-pattern"};
// What a launcher says that the plan needs; its other flags are its own.
constexpr std::array kOfLauncher = {"--nproc_per_node", "--nproc-per-node", "--nnodes"};
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

bool trains(const ShellCommand& command) {
  return std::ranges::any_of(command.words, [](const ShellWord& word) {
    return is_flag(word.text) && std::ranges::count(kOfTraining, dashed(name_of(word.text))) > 0;
  });
}

bool has_flags(const ShellCommand& command) {
  return std::ranges::count(kShow, command.words.front().text) == 0 &&
         std::ranges::any_of(command.words, [](const ShellWord& word) { return is_flag(word.text); });
}

// Elements of an array may hold a flag and its value in one pair of quotes.
std::vector<ShellWord> separate(const std::vector<ShellWord>& words) {
  std::vector<ShellWord> all;
  for (const ShellWord& word : words) {
    if (!is_flag(word.text) || word.text.find(' ') == std::string::npos) {
      all.push_back(word);
      continue;
    }
    std::istringstream parts(word.text);
    for (std::string part; parts >> part;) all.push_back({part, word.line, word.branch});
  }
  return all;
}

// The words before the program that trains are its launcher's: before the first Python file that is no flag's
// value.
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

// One that is not set, and may therefore hold any words.
bool is_unknown(const std::string& word) {
  return word.starts_with('$') && word.size() > 1;
}

void add_flags(const ShellCommand& command, ScriptFlags& found) {
  const std::vector<ShellWord> words = separate(command.words);
  const std::size_t program = end_of_launcher(words);
  bool open = false;  // a flag takes what follows
  for (std::size_t i = 0; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    const BranchPointer& branch = word.branch ? word.branch : command.branch;
    const bool is_short = word.text.size() > 1 && word.text[0] == '-' &&
                          std::isalpha(static_cast<unsigned char>(word.text[1])) != 0;
    if ((i == program && program > 0) || is_short) {
      open = false;
      continue;
    }
    if (is_flag(word.text)) {
      const std::size_t equals = word.text.find('=');
      open = i > program || program == 0 || std::ranges::count(kOfLauncher, name_of(word.text)) > 0;
      if (!open) continue;
      found.flags.push_back({name_of(word.text), {}, word.line, condition_of(branch)});
      if (equals != std::string::npos) found.flags.back().values.push_back(word.text.substr(equals + 1));
      continue;
    }
    const bool is_first = open && found.flags.back().values.empty();
    if (is_unknown(word.text) && i > program && !is_first) {
      found.notes.push_back(
          fmt::format("line {}: {} is not set in the text: counted as empty", word.line, word.text));
    } else if (open) {
      ScriptFlag& flag = found.flags.back();
      flag.values.push_back(word.text);
      if (flag.condition.empty()) flag.condition = condition_of(branch);
    }
  }
}

bool same_words(const ShellCommand& a, const ShellCommand& b) {
  return std::ranges::equal(a.words, b.words, {}, &ShellWord::text, &ShellWord::text);
}

// Where several commands train the same, the first.
const ShellCommand* the_command(const std::vector<const ShellCommand*>& candidates, const std::string& file) {
  if (candidates.empty()) return nullptr;
  const ShellCommand& first = *candidates.front();
  std::vector<Violation> violations;
  for (const ShellCommand* each : candidates) {
    if (each->branch)
      violations.push_back({file, fmt::format("line {}", each->line),
                            "the training command is in a branch whose condition the text does not decide",
                            condition_of(each->branch), "set its variables in the first lines of the file"});
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

// A file of assignments, which another script would read.
void add_variables(const ShellRun& run, ScriptFlags& found) {
  std::vector<std::string> names;
  for (const auto& [name, value] : run.variables) {
    ShellCommand command;
    for (const ShellText& element : value)
      for (const ShellPiece& piece : element) {
        std::istringstream words(piece.text);
        for (std::string word; words >> word;) command.words.push_back({word, piece.line, piece.branch});
      }
    if (command.words.empty() || !has_flags(command)) continue;
    add_flags(command, found);
    names.push_back(name);
  }
  if (!names.empty())
    found.notes.push_back("the text has no command: flags are read from its variables " + join(names));
}

}  // namespace

ScriptFlags script_flags(const std::string& text, const std::string& file) {
  const ShellRun run = shell_run(text, file);
  std::vector<const ShellCommand*> training, others;
  std::vector<const ShellCommand*> bare;  // lines of a file of arguments
  for (const ShellCommand& command : run.commands) {
    if (!has_flags(command)) continue;
    if (is_flag(command.words.front().text))
      bare.push_back(&command);
    else
      (trains(command) ? training : others).push_back(&command);
  }
  ScriptFlags found;
  const bool is_list = training.empty() && !bare.empty();
  if (const ShellCommand* command =
          is_list ? nullptr : the_command(training.empty() ? others : training, file)) {
    add_flags(*command, found);
    for (const ShellCommand* line : bare)
      found.notes.push_back(fmt::format("line {}: {} and what follows belong to no command: ignored",
                                        line->line, line->words.front().text));
  } else if (is_list) {
    for (const ShellCommand* line : bare) add_flags(*line, found);
  } else {
    add_variables(run, found);
  }
  return found;
}

}  // namespace rehearse
