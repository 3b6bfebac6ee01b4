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
      request.shell.files = {
          {"small.yaml",
           "modules:\n  pre_trainer:\n    framework: megatron\n    overrides: {num_layers: 4, "
           "hidden_size: 256, num_attention_heads: 4, seq_length: \"${SEQ:512}\"}\n"}};
      const Imported imported =
          detect_kind(file).kind->read(file, request, [](const std::string&) { return std::int64_t{32}; });
      imported.scenario.dump();
      imported.model.dump();
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
