#include "cost/nccl/read_model.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kCollectives("collectives", [](const std::string& input) { nccl::read_model(file_of(input)); });

}  // namespace

}  // namespace rehearse::fuzz
