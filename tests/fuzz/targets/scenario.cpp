#include "scenario/scenario.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// Like `check`, up to a plan that obeys every rule, with its model, cluster and profile.
const Target kScenario("scenario", [](const std::string& input) {
  constexpr int kMaxScenarioReads = 5000;  // changed clusters are kept, and would fill the memory
  static std::optional<Inputs> inputs;
  static int reads = 0;
  if (reads++ % kMaxScenarioReads == 0) inputs.emplace();
  Replaced replaced;
  replaced.inputs = &*inputs;
  read_scenario(collect({file_of(input), {}}), replaced);
});

}  // namespace

}  // namespace rehearse::fuzz
