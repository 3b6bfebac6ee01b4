#include "plan/layer_split.h"

#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  parse_layout(input);
}
