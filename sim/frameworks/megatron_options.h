// Which options does Megatron-LM have, in any release, and how does each change a scenario? The table is
// megatron_options.json, which tools/megatron-options makes from Megatron-LM's own sources.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

enum class OptionRole : std::uint8_t {
  field,      // its value is one field of the scenario
  combined,   // several fields follow from it
  shape,      // of the network
  free,       // leaves time and memory of a step as they are
  unmodelled  // changes them in a way that is not modelled
};

enum class OptionTakes : std::uint8_t { nothing, integer, number, text, list };

struct MegatronOption {
  std::vector<std::string> names;      // "--num-layers"; the first one is the name
  std::vector<std::string> arguments;  // that Megatron-LM keeps its value in; the first is of the name
  bool negates = false;                // a switch that sets its argument to False
  OptionTakes takes = OptionTakes::text;
  std::vector<std::string> choices;  // empty: any value
  bool open = false;                 // forks have more of them
  std::string many;                  // the rule of several values, where forks take a list
  OptionRole role = OptionRole::free;
  std::string pointer;  // of the field
  bool off = false;     // a switch that turns its field off
  std::string unless;   // the pointer of a field that decides instead, where the command line gives it
  std::string effect;   // of an unmodelled option: the counted behaviour
  std::string changes;  // of the answer by it, above 10 % (base/omitted_effect.h)
  std::vector<std::string> defaults;  // of an unmodelled option: values that mean the counted behaviour

  const std::string& name() const { return names.front(); }
  bool takes_number() const { return takes == OptionTakes::integer || takes == OptionTakes::number; }
  bool is_default(const std::string& value) const;
};

const std::vector<MegatronOption>& megatron_options();

// Finds an option by any of its names; '_' equals '-'. Null where there is none.
const MegatronOption* find_megatron_option(const std::string& name);

// Options that set an argument: none, one, or two opposite switches.
std::vector<const MegatronOption*> options_of_argument(const std::string& argument);

// Every name once, for suggestions.
const std::vector<std::string>& megatron_option_names();

}  // namespace rehearse
