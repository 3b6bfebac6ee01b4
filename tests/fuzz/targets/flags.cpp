#include <sstream>

#include "fuzz/target.h"
#include "scenario/scenario.h"
#include "scenario/swept.h"

namespace rehearse::fuzz {

namespace {

// A command line, a word a line: flags with their values, and fields after --set. As `sweep` reads it, to its
// first point.
const Target kFlags("flags", [](const std::string& input) {
  static Inputs inputs;
  Replaced replaced;
  replaced.inputs = &inputs;
  GivenFlags given;
  std::istringstream lines(input);
  for (std::string name, value; std::getline(lines, name) && std::getline(lines, value);) {
    if (name == "--set") {
      given.sets.push_back(value);
    } else {
      given.values[name] = value;
    }
  }
  const Swept swept = read_swept(given);
  read_scenario(source_at(swept, 0), replaced);
});

}  // namespace

}  // namespace rehearse::fuzz
