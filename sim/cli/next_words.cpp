#include "cli/next_words.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "cli/flags.h"
#include "cli/name_lists.h"
#include "plan/plan.h"
#include "result/explain/explain.h"

namespace rehearse {

namespace {

std::vector<NextWord> as_candidates(const std::vector<std::string>& words) {
  std::vector<NextWord> all;
  for (const std::string& word : words) all.push_back({word, ""});
  return all;
}

std::vector<NextWord> names_of_kind(const std::string& kind) {
  for (const NameList& list : name_lists())
    if (list.kind == kind) return as_candidates(list.names());
  return {};
}

std::vector<NextWord> verbs_of(const CLI::App& app) {
  std::vector<NextWord> all;
  for (const CLI::App* verb : app.get_subcommands({}))
    all.push_back({verb->get_name(), verb->get_description()});
  return all;
}

// Words of "[auto|always|never]", or of "{cold,warm}" within a text; what stands for a value has capitals or
// signs.
std::vector<NextWord> alternatives(std::string text, char separator) {
  const std::size_t open = text.find('{'), close = text.find('}');
  if (separator == ',') {
    if (open == std::string::npos || close == std::string::npos) return {};
    text = text.substr(open + 1, close - open - 1);
  } else if (text.find(separator) == std::string::npos) {
    return {};
  }
  std::erase_if(text, [](char letter) { return letter == '[' || letter == ']'; });
  const auto is_plain = [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-' || letter == '_';
  };
  std::vector<NextWord> all;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, separator);)
    if (!word.empty() && std::ranges::all_of(word, is_plain)) all.push_back({word, ""});
  return all;
}

// Of what only a list of the program's knows.
std::vector<NextWord> listed_values(const CLI::App& program, const CLI::App& verb,
                                    const std::string& option) {
  static const std::map<std::string, std::string> kinds = {
      {"--model", "models"},     {"--cluster", "clusters"},     {"--like", "clusters"},
      {"--profile", "profiles"}, {"--into", "profiles"},        {"--schedule", "schedules"},
      {"cluster", "clusters"},   {"--framework", "frameworks"}, {"shown", "profiles"},
      {"first", "profiles"},     {"second", "profiles"}};
  if (const auto kind = kinds.find(option); kind != kinds.end()) return names_of_kind(kind->second);
  std::vector<NextWord> all;
  for (const Flag& flag : scenario_flags())
    if (flag.name == option)
      for (const std::string& word : flag.words) all.push_back({word, ""});
  if (option == "topic")
    for (const Topic& topic : topics()) all.push_back({topic.name, topic.question});
  if (option == "verb" && verb.get_name() == "help") all = verbs_of(program);
  return all;
}

std::string name_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  return option.get_lnames().empty() ? "-" + option.get_snames().front() : "--" + option.get_lnames().front();
}

std::vector<NextWord> values_of(const CLI::App& program, const CLI::App& verb, const CLI::Option& option) {
  std::vector<NextWord> all = listed_values(program, verb, name_of(option));
  if (all.empty()) all = alternatives(option.get_option_text(), '|');
  if (all.empty()) all = alternatives(option.get_type_name(), ',');
  return all;
}

// Where the words so far lead: the verb, the flag whose value is next, and how many words without a flag it
// has.
struct Place {
  const CLI::App* verb = nullptr;
  const CLI::Option* flag = nullptr;
  std::size_t positionals = 0;

  void take(const std::string& word) {
    if (flag != nullptr) {
      if (word != "=") flag = nullptr;
      return;
    }
    if (word.starts_with('-')) {
      const CLI::Option* const found = verb->get_option_no_throw(word);
      if (found != nullptr && found->get_expected_max() > 0) flag = found;
      return;
    }
    for (const CLI::App* below : verb->get_subcommands({}))
      if (below->get_name() == word) {
        *this = {below, nullptr, 0};
        return;
      }
    ++positionals;
  }
};

std::vector<NextWord> flags_of(const CLI::App& verb) {
  std::vector<NextWord> all;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames())
      all.push_back({"--" + name, option->get_description()});
  return all;
}

std::vector<NextWord> words_without_flag(const CLI::App& program, const Place& place) {
  std::vector<NextWord> all;
  if (place.positionals == 0) all = verbs_of(*place.verb);
  const auto options =
      place.verb->get_options([](const CLI::Option* each) { return each->get_positional(); });
  if (place.positionals < options.size())
    std::ranges::move(values_of(program, *place.verb, *options[place.positionals]), std::back_inserter(all));
  return all;
}

}  // namespace

std::vector<NextWord> next_words(const CLI::App& program, const std::vector<std::string>& before,
                                 const std::string& word) {
  Place place{&program};
  for (const std::string& each : before) place.take(each);
  std::string begun = word, front;  // what is asked for, and what stands before it in the same word
  const std::size_t equals = word.find('=');
  if (word == "=" && place.flag != nullptr) {
    begun.clear();
  } else if (place.flag == nullptr && word.starts_with("--") && equals != std::string::npos) {
    place.take(word.substr(0, equals));
    front = word.substr(0, equals + 1);
    begun = word.substr(equals + 1);
  }
  // A sweep takes lists.
  if (const std::size_t comma = begun.rfind(','); place.flag != nullptr && comma != std::string::npos) {
    front += begun.substr(0, comma + 1);
    begun.erase(0, comma + 1);
  }
  std::vector<NextWord> all = place.flag != nullptr    ? values_of(program, *place.verb, *place.flag)
                              : begun.starts_with('-') ? flags_of(*place.verb)
                                                       : words_without_flag(program, place);
  std::erase_if(all, [&](const NextWord& each) { return !each.word.starts_with(begun); });
  for (NextWord& each : all) each.word = front + each.word;
  return all;
}

}  // namespace rehearse
