#include "cli/verb.h"

#include <fmt/core.h>

#include <algorithm>

namespace rehearse {

void Verb::add_all(const std::vector<VerbOption>& more) {
  options.insert(options.end(), more.begin(), more.end());
}

const VerbOption* Verb::find_option(const std::string& of_this_name) const {
  const auto has_name = [&](const VerbOption& each) {
    return std::ranges::find(each.names, of_this_name) != each.names.end();
  };
  const auto found = std::ranges::find_if(options, has_name);
  return found == options.end() ? nullptr : &*found;
}

const Verb* Verb::find_verb(const std::string& of_this_name) const {
  const auto found = std::ranges::find(verbs, of_this_name, &Verb::name);
  return found == verbs.end() ? nullptr : &*found;
}

std::vector<VerbOption> scenario_options(GivenFlags& given) {
  std::vector<VerbOption> options = {
      {{"scenario"}, &given.file, "scenario file; - reads standard input", "[SCENARIO.json]"}};
  for (const Flag& flag : scenario_flags()) {
    VerbOption& option = options.emplace_back();
    option.names = {flag.name};
    option.names.insert(option.names.end(), flag.aliases.begin(), flag.aliases.end());
    option.target = [&given, &flag](const std::vector<std::string>& values) {
      if (values.size() > 1)
        throw InputError({"command line", flag.name, "is given more than once", join(values, ", then "),
                          fmt::format("{} {}", flag.name, values.back())});
      given.values[flag.name] = values.front();
    };
    option.help = flag.by_default.empty() ? flag.help : fmt::format("{} [{}]", flag.help, flag.by_default);
    option.value = flag.value;
    option.arity = Arity::one_each_time;
    option.group = flag.group;
    option.daily = flag.daily;
  }
  options.push_back({.names = {"--large"},
                     .target = &given.large,
                     .help = "run whatever it takes; else at most 4 GB and ten minutes, by an estimate",
                     .group = HelpGroup::inputs,
                     .daily = false});
  options.push_back({.names = {"--set"},
                     .target = &given.sets,
                     .help = "a field by its path, as cluster.node.nics.count=4",
                     .value = "FIELD=VALUE",
                     .arity = Arity::one_each_time,
                     .group = HelpGroup::inputs,
                     .daily = false});
  return options;
}

}  // namespace rehearse
