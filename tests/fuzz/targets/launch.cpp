#include "frameworks/kinds.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// A file whose name tells nothing, with words handed in.
const Target kLaunch(
    "launch",
    [](const std::string& input) {
      const LaunchFile file{"launch", input};
      ImportRequest request;
      request.shell.variables = {{"SIZE", "8B"}};
      request.shell.arguments = {"1", "2"};
      const Imported imported =
          detect_kind(file).kind->read(file, request, [](const std::string&) { return std::int64_t{32}; });
      imported.scenario.dump();
      imported.model.dump();
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
