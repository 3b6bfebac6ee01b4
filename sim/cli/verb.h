// Which options does a verb have, and which function runs it? Data for the parser, the help and the
// completion.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scenario/flags.h"

namespace rehearse {

// Where the parser stores the given values. A bool is set by a flag without a value. A vector takes any
// number of values. A function is called once, with all given values.
using OptionTarget =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, std::optional<int>*,
                 std::optional<double>*, std::optional<std::string>*, std::vector<std::int64_t>*,
                 std::vector<std::string>*, std::function<void(const std::vector<std::string>&)>>;

enum class Arity {
  of_target,      // one value, or any number for a vector
  at_most_one,    // the option may stand alone
  two,            // A B
  one_each_time,  // the option may be given again
  list            // A,B; the option may be given again
};

struct VerbOption {
  std::vector<std::string> names;  // "--jobs", "-j"; without dashes: a positional word
  OptionTarget target;
  std::string help;
  std::string value = {};                                      // the value's placeholder in the help: "N"
  std::vector<std::string> words = {};                         // the legal values, where they are few words
  std::optional<std::pair<double, double>> bounds = {};        // of a number; both are legal
  std::function<std::string(const std::string&)> refuse = {};  // why a value is refused; "": it is legal
  Arity arity = Arity::of_target;
  bool required = false;
  std::string needs = {}, excludes = {};  // name of another option of the verb
  std::optional<HelpGroup> group = {};    // none: an option of this verb alone
  bool daily = true;                      // --help shows it; --help-all shows all

  bool is_word() const { return !names.front().starts_with('-'); }
  bool takes_value() const { return !std::holds_alternative<bool*>(target); }
};

// The program itself is a Verb; the others are its `verbs`.
struct Verb {
  std::string name, help;
  std::vector<VerbOption> options = {};
  std::string footer = {};        // below its help
  std::function<int()> run = {};  // returns an ExitCode; none: one of `verbs` must be named
  std::vector<Verb> verbs = {};   // as megatron of `import megatron`

  void add(VerbOption option) { options.push_back(std::move(option)); }
  void add_all(const std::vector<VerbOption>& more);

  // By name; nullptr where there is none.
  const VerbOption* find_option(const std::string& of_this_name) const;
  const Verb* find_verb(const std::string& of_this_name) const;
};

// [SCENARIO.json], which comes first, and every flag of a scenario.
std::vector<VerbOption> scenario_options(GivenFlags& given);

}  // namespace rehearse
