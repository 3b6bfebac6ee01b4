#include "frameworks/imported.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// The imported result is written as JSON.
const Target kDeepspeed(
    "deepspeed",
    [](const std::string& input) {
      const Imported imported = import_deepspeed(JsonReader::open(file_of(input)), 64);
      imported.scenario.dump();
      imported.model.dump();
    },
    Target::Declares::input);

}  // namespace

}  // namespace rehearse::fuzz
