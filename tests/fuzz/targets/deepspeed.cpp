#include "frameworks/imported.h"
#include "fuzz/target.h"

// What is imported is written as JSON.
void rehearse::fuzz::read(const std::string& input) {
  const Imported imported = import_deepspeed(JsonReader::open(file_of(input)), 64);
  imported.scenario.dump();
  imported.model.dump();
}
