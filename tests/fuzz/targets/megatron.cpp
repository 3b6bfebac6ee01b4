#include "frameworks/imported.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// The imported result is written as JSON.
const Target kMegatron(
    "megatron",
    [](const std::string& input) {
      const Imported imported = import_megatron(input, "train.sh");
      imported.scenario.dump();
      imported.model.dump();
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
