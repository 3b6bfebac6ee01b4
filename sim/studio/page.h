// What does a reader of the studio see first?
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace rehearse::studio {

// A field of the scenario that can be turned. `name` is its flag.
struct Knob {
  std::string name, label, group;
  std::vector<std::string> choices;  // empty: a whole number
  std::string value;                 // of the scenario that the studio began with
};

// The page, with the first answer in it: `first` is {run} or {violations}, as /run answers. The studio began
// with the scenario of `file` ("": none), and `flags` replaced some of its values.
std::string write_page(const std::string& title, const std::vector<Knob>& knobs, const std::string& file,
                       const std::map<std::string, std::string>& flags, const nlohmann::ordered_json& first);

}  // namespace rehearse::studio
