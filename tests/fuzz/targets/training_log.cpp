#include "frameworks/training_log.h"

#include "fuzz/target.h"

void rehearse::fuzz::read(const std::string& input) {
  median_step(read_training_log(input, "train.log"), 1, "train.log");
}
