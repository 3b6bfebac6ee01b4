#include "schedule/check.h"

#include <fmt/core.h>

#include "schedule/checks.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxFaults = 20;  // one cause may break thousands of ops

void shorten(Faults& faults) {
  if (faults.size() <= kMaxFaults) return;
  const std::size_t more = faults.size() - kMaxFaults;
  faults.resize(kMaxFaults);
  faults.push_back(fmt::format("and {} more faults", more));
}

}  // namespace

std::vector<std::string> check_computation(const Schedule& schedule, const Plan& plan) {
  Faults faults;
  check_shape(schedule, plan, faults);
  if (faults.empty()) check_counts(schedule, faults);
  shorten(faults);
  return faults;
}

std::vector<std::string> check_schedule(const Schedule& schedule, const Plan& plan) {
  Faults faults;
  check_shape(schedule, plan, faults);
  if (faults.empty()) {
    check_counts(schedule, faults);
    check_messages(schedule, faults);
    check_waits(schedule, faults);
  }
  if (faults.empty()) check_deadlock(schedule, plan, faults);
  shorten(faults);
  return faults;
}

}  // namespace rehearse
