#include "calibrate/import/nccl_json_log.h"
#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  nccl::read_json_log(JsonReader::open(file_of(input)));
}
