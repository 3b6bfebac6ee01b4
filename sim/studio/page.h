// Which page does a reader of the studio see first?
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace rehearse::studio {

// A field of the scenario that can be changed. `name` is its flag.
struct Knob {
  std::string name, label, group;
  std::vector<std::string> choices;  // empty: a whole number
  std::string value;                 // from the studio's first scenario
};

// The page, with the first answer included: `first` is {run} or {violations}, as from /run. The studio's
// first scenario is `file` ("": none), with some values replaced by `flags`.
std::string write_page(const std::string& title, const std::vector<Knob>& knobs, const std::string& file,
                       const std::map<std::string, std::string>& flags, const nlohmann::ordered_json& first);

}  // namespace rehearse::studio
