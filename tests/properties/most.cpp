#include "most.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace rehearse::properties {

namespace {

struct Most {
  std::map<std::string, double> values;
  ~Most() {
    for (const auto& [what, value] : values) fmt::print("at most {:.4f} %: {}\n", 100 * value, what);
  }
};

}  // namespace

void note_most(const std::string& what, double value) {
  static Most most;
  double& known = most.values.try_emplace(what, value).first->second;
  known = std::max(known, value);
}

}  // namespace rehearse::properties
