#include "cost/profile.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kProfile("profile", [](const std::string& input) { read_profile(file_of(input)); });

}  // namespace

}  // namespace rehearse::fuzz
