#include "model/read.h"

#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kModel("model", [](const std::string& input) { read_model(file_of(input)); });

// The first line is the type that --as gives.
const Target kModelAs("model_as", [](const std::string& input) {
  const auto [as, config] = first_line(input);
  read_model(file_of(config), as);
});

}  // namespace

}  // namespace rehearse::fuzz
