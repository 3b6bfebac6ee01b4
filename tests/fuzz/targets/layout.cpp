#include "plan/layer_split.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kLayout("layout", [](const std::string& input) { parse_layout(input, {}); });

}  // namespace

}  // namespace rehearse::fuzz
