#include "frameworks/training_log.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kTrainingLog("training_log", [](const std::string& input) {
  median_step(read_training_log(input, "train.log"), 1, "train.log");
});

}  // namespace

}  // namespace rehearse::fuzz
