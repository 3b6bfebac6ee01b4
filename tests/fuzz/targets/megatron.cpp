#include "frameworks/imported.h"
#include "fuzz/target.h"

// What is imported is written as JSON.
void rehearse::fuzz::read(const std::string& input) {
  const Imported imported = import_megatron(input, "train.sh", {"own-flag"});
  imported.scenario.dump();
  imported.model.dump();
}
