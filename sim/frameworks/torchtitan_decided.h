// Does a registry of torchtitan decide all that shapes the step, with values of the declared types?
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "frameworks/python_settings.h"

namespace rehearse {

// Sections that a registry has in common with a TOML file.
inline constexpr std::array kSectionsOfRegistry = {"training",   "parallelism",  "compile", "optimizer",
                                                   "checkpoint", "lr_scheduler", "metrics", "profiling",
                                                   "debug",      "comm"};

// Of its integers.
inline constexpr std::int64_t kMaxOfRegistry = std::int64_t{1} << 40;

// Notes on open values without effect on the step. InputError for the others, which never become defaults,
// unless the command line gives them.
std::vector<std::string> require_decided_registry(const PythonSettings& found, const SaidOverFile& over,
                                                  const std::string& file);

}  // namespace rehearse
