#include "cli/next_words.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "cli/help.h"
#include "plan/plan.h"
#include "result/explain/explain.h"
#include "scenario/flags.h"
#include "scenario/name_lists.h"

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

std::vector<NextWord> verbs_of(const Verb& above) {
  std::vector<NextWord> all;
  for (const Verb& verb : above.verbs) all.push_back({verb.name, verb.help});
  return all;
}

// Words of "[auto|always|never]". Placeholders for values have capitals or symbols.
std::vector<NextWord> alternatives(std::string text) {
  if (text.find('|') == std::string::npos) return {};
  std::erase_if(text, [](char letter) { return letter == '[' || letter == ']'; });
  const auto is_plain = [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '-' || letter == '_';
  };
  std::vector<NextWord> all;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, '|');)
    if (!word.empty() && std::ranges::all_of(word, is_plain)) all.push_back({word, ""});
  return all;
}

// Values that only one of the program's lists has.
std::vector<NextWord> listed_values(const Verb& program, const Verb& verb, const std::string& option) {
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
  if (option == "verb" && verb.name == "help") all = verbs_of(program);
  return all;
}

std::vector<NextWord> values_of(const Verb& program, const Verb& verb, const VerbOption& option) {
  std::vector<NextWord> all = listed_values(program, verb, option.names.front());
  if (all.empty()) all = as_candidates(option.words);
  if (all.empty()) all = alternatives(option.value);
  return all;
}

// The place after the given words: the verb, the flag whose value is next, and the number of words without a
// flag.
struct Place {
  const Verb* verb = nullptr;
  const VerbOption* flag = nullptr;
  std::size_t positionals = 0;

  void take(const std::string& word) {
    if (flag != nullptr) {
      if (word != "=") flag = nullptr;
      return;
    }
    if (word.starts_with('-')) {
      const VerbOption* const found = verb->find_option(word);
      if (found != nullptr && found->takes_value()) flag = found;
    } else if (const Verb* const below = verb->find_verb(word)) {
      *this = {below, nullptr, 0};
    } else {
      ++positionals;
    }
  }
};

std::vector<NextWord> flags_of(const Verb& verb) {
  std::vector<NextWord> all;
  for (const HelpFlag& flag : help_flags()) all.push_back({flag.name, flag.help});
  for (const VerbOption& option : verb.options)
    for (const std::string& name : option.names)
      if (name.starts_with("--")) all.push_back({name, option.help});
  return all;
}

std::vector<NextWord> words_without_flag(const Verb& program, const Place& place) {
  std::vector<NextWord> all;
  if (place.positionals == 0) all = verbs_of(*place.verb);
  std::size_t position = 0;
  for (const VerbOption& option : place.verb->options)
    if (option.is_word() && position++ == place.positionals)
      std::ranges::move(values_of(program, *place.verb, option), std::back_inserter(all));
  return all;
}

}  // namespace

std::vector<NextWord> next_words(const Verb& program, const std::vector<std::string>& before,
                                 const std::string& word) {
  Place place{&program};
  for (const std::string& each : before) place.take(each);
  std::string begun = word, front;  // the part to complete, and the part of the word before it
  const std::size_t equals = word.find('=');
  if (word == "=" && place.flag != nullptr) {
    begun.clear();
  } else if (place.flag == nullptr && word.starts_with("--") && equals != std::string::npos) {
    place.take(word.substr(0, equals));
    front = word.substr(0, equals + 1);
    begun = word.substr(equals + 1);
  }
  // A sweep accepts lists.
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
