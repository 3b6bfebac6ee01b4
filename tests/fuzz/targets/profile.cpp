#include "cost/profile.h"

#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  read_profile(file_of(input));
}
