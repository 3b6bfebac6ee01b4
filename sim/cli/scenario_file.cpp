#include "cli/scenario_file.h"

#include <CLI/CLI.hpp>

#include "base/json_kind.h"

namespace rehearse {

namespace {

void require_scenario_of(const CLI::App& verb) {
  if (verb.get_name() == "import") return;
  const CLI::Option* const scenario = verb.get_option_no_throw("scenario");
  if (scenario != nullptr)
    for (const std::string& file : scenario->results())
      require_kind(read_json_file(file), file, JsonKind::scenario);
  for (const CLI::App* chosen : verb.get_subcommands()) require_scenario_of(*chosen);
}

}  // namespace

void require_scenarios(CLI::App& program) {
  // After words that nobody knows were refused, before the verb runs.
  program.parse_complete_callback([&program] { require_scenario_of(program); });
}

}  // namespace rehearse
