#include "plan/frameworks/traits.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "plan/plan.h"

namespace rehearse {

namespace {

constexpr std::array kAll = {
#define REHEARSE_FRAMEWORK(NAME) &frameworks::NAME,
#include "plan/frameworks/frameworks.def"
};

}  // namespace

const FrameworkTraits& traits(Framework framework) {
  for (const FrameworkTraits* each : kAll)
    if (each->framework == framework) return *each;
  throw std::logic_error("a framework without traits");
}

const FrameworkTraits& traits(const Plan& plan) {
  return traits(plan.framework);
}

std::string to_string(Framework framework) {
  return traits(framework).name;
}

void apply_framework(Plan& plan) {
  plan.sequence_parallel = plan.tp > 1;
  plan.reshard_after_forward = plan.reduce_each_microbatch = plan.pp == 1;
  plan.fused_accumulation = false;
  traits(plan).set_defaults(plan);
}

bool use_framework(std::string_view name_and_version, Plan& plan) {
  const std::size_t at = name_and_version.find('@');
  const std::string_view name = name_and_version.substr(0, at);
  const auto* const found =
      std::ranges::find_if(kAll, [&](const FrameworkTraits* each) { return name == each->name; });
  if (found == kAll.end()) return false;
  const FrameworkTraits& framework = **found;
  if (at != std::string_view::npos) {
    const std::string_view version = name_and_version.substr(at + 1);
    if (std::ranges::find(framework.versions, version) == framework.versions.end()) return false;
    if (framework.as_version != nullptr) framework.as_version(plan, version);
  }
  plan.framework = framework.framework;
  return true;
}

}  // namespace rehearse
