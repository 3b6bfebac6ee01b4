// Of which kind is a launch file, and how is each kind read?
#pragma once

#include <functional>
#include <span>
#include <string>

#include "frameworks/imported.h"

namespace rehearse {

struct LaunchFile {
  std::string name;  // as messages show it
  std::string text;
};

// Number of layers of a model that is given by name or file.
using LayersOfModel = std::function<std::int64_t(const std::string&)>;

struct LaunchKind {
  const char* name;  // as `import KIND FILE` takes it
  const char* help;
  Imported (*read)(const LaunchFile& file, const ImportRequest& request, const LayersOfModel& layers);
};
std::span<const LaunchKind> launch_kinds();

struct DetectedKind {
  const LaunchKind* kind = nullptr;
  std::string what;  // "the arguments that a log of Megatron-LM prints"
};

// Detects the kind by the name's ending and by the contents. Where no kind fits, InputError describes the
// file.
DetectedKind detect_kind(const LaunchFile& file);

}  // namespace rehearse
