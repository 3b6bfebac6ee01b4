#include "cli/verb.h"

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

}  // namespace rehearse
