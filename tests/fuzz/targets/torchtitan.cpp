#include "frameworks/imported.h"
#include "fuzz/target.h"

// What is imported is written as JSON.
void rehearse::fuzz::read(const std::string& input) {
  const Imported imported = import_torchtitan(input, "train.toml", 64);
  imported.scenario.dump();
  imported.model.dump();
}
