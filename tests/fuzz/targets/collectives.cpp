#include "cost/nccl/read_model.h"
#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  nccl::read_model(file_of(input));
}
