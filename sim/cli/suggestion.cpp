#include "cli/suggestion.h"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/quantity.h"
#include "cluster/cluster.h"

namespace rehearse {

namespace {

// Other programs' names for the same flag, where the spelling is too different.
const std::map<std::string, std::string>& names_elsewhere() {
  static const std::map<std::string, std::string> names = {
      {"--num-gpus", "--gpus"},       {"--world-size", "--gpus"},      {"--batch-size", "--gbs"},
      {"--sequence-length", "--seq"}, {"--num-microbatches", "--gbs"}, {"--dtype", "--precision"}};
  return names;
}

std::string before_equals(const std::string& word) {
  return word.substr(0, word.find('='));
}

// "" for an option that was not given.
std::string given(const UsageError& error, const std::string& option) {
  const auto found = error.given.find(option);
  return found == error.given.end() ? "" : found->second;
}

// The value of an unknown flag: after "=", the next unknown word, or what was taken for the scenario's file.
std::string value_of(const UsageError& error, std::size_t flag) {
  const std::string& word = error.unknown[flag];
  if (const std::size_t equals = word.find('='); equals != std::string::npos) return word.substr(equals + 1);
  return flag + 1 < error.unknown.size() ? error.unknown[flag + 1] : given(error, "scenario");
}

// "--nodes 16" with a cluster of eight GPUs a node is "--gpus 128".
std::string gpus_of_nodes(const UsageError& error) {
  static const std::set<std::string> kNodes = {"--nodes", "--nnodes", "--num-nodes", "--hosts"};
  constexpr double kMaxNodes = 1e6;
  const Verb& verb = *error.chosen.back();
  if (verb.find_option("--gpus") == nullptr || verb.find_option("--cluster") == nullptr) return "";
  for (std::size_t i = 0; i < error.unknown.size(); ++i) {
    if (!kNodes.contains(before_equals(error.unknown[i]))) continue;
    const std::optional<double> nodes = parse_decimal(value_of(error, i));
    const std::string cluster = given(error, "--cluster");
    if (!nodes || *nodes < 1 || *nodes > kMaxNodes || cluster.empty())
      return "; GPUs are counted, not nodes: --gpus N";
    const int gpus = read_cluster(cluster).node.gpus;
    return fmt::format("; GPUs are counted, not nodes: --gpus {:.0f} ({:.0f} nodes of {} GPUs)",
                       *nodes * gpus, *nodes, gpus);
  }
  return "";
}

std::vector<std::string> names_of_verbs(const Verb& above) {
  std::vector<std::string> names;
  for (const Verb& verb : above.verbs) names.push_back(verb.name);
  return names;
}

// The chosen verb's suggestion for the words, other than by spelling.
std::string known_elsewhere(const UsageError& error) {
  const Verb& verb = *error.chosen.back();
  if (std::string gpus = gpus_of_nodes(error); !gpus.empty()) return gpus;
  for (const std::string& word : error.unknown)
    if (const auto found = names_elsewhere().find(before_equals(word));
        found != names_elsewhere().end() && verb.find_option(found->second) != nullptr)
      return fmt::format("; did you mean {}?", found->second);
  if (verb.verbs.empty()) return "";
  return fmt::format("; {} takes one of {}", verb.name, join(names_of_verbs(verb)));
}

}  // namespace

std::string suggestion(const Verb& program, const UsageError& error) {
  std::vector<std::string> known;
  if (error.chosen.empty()) {
    known = names_of_verbs(program);
  } else {
    if (std::string elsewhere = known_elsewhere(error); !elsewhere.empty()) return elsewhere;
    for (const VerbOption& option : error.chosen.back()->options)
      for (const std::string& name : option.names)
        if (name.starts_with("--")) known.push_back(name);
  }
  for (const std::string& word : error.unknown)
    if (const std::string near = nearest_name(before_equals(word), known); !near.empty())
      return fmt::format("; did you mean {}?", near);
  return "";
}

std::string empty_value(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_flag = word.starts_with("--") && word.find('=') + 1 == word.size();
    if (is_flag) return word.substr(0, word.size() - 1) + ": the value is empty";
    if (!word.empty()) continue;
    const bool follows_flag = i > 0 && words[i - 1].starts_with('-');
    return (follows_flag ? words[i - 1] : "a word") + (follows_flag ? ": the value is empty" : " is empty");
  }
  return "";
}

}  // namespace rehearse
