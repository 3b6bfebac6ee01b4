#include <fmt/core.h>

#include "base/json_reader.h"
#include "cli/verbs.h"
#include "run/simulate.h"

namespace rehearse {

namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

std::string version_line() {
  return fmt::format("rehearse {} (SimGrid {}, {})", REHEARSE_VERSION, simgrid_version(), compiler());
}

std::string version_json() {
  const Json json = {{"schema", "rehearse.version/1"},    {"version", REHEARSE_VERSION},
                     {"simgrid", simgrid_version()},      {"compiler", compiler()},
                     {"build_type", REHEARSE_BUILD_TYPE}, {"cuda", REHEARSE_CUDA_VERSION}};
  return json.dump(2);
}

}  // namespace rehearse
