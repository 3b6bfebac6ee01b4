#include "calibrate/import/nccl_log.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kNcclLog("nccl_log", [](const std::string& input) { nccl::read_log(file_of(input)); });

}  // namespace

}  // namespace rehearse::fuzz
