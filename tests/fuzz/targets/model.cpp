#include "model/read.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kModel("model", [](const std::string& input) { read_model(file_of(input)); });

}  // namespace

}  // namespace rehearse::fuzz
