#include "calibrate/import/nccl_log.h"
#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  nccl::read_log(file_of(input));
}
