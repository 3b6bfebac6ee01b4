#include "frameworks/imported.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// The imported result is written as JSON.
const Target kTorchtitan(
    "torchtitan",
    [](const std::string& input) {
      const Imported imported = import_torchtitan(input, "train.toml", 64, 80);
      imported.scenario.dump();
      imported.model.dump();
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
