#include "model/read.h"

#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  read_model(file_of(input));
}
