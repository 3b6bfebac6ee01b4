#include "calibrate/import/nccl_json_log.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kNcclJson("nccl_json", [](const std::string& input) {
  nccl::read_json_log(JsonReader::open(file_of(input)));
});

}  // namespace

}  // namespace rehearse::fuzz
