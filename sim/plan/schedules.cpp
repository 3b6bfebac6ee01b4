#include "plan/schedules.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "base/names.h"
#include "plan/plan.h"

namespace rehearse {

namespace {

// Bubble: a fill of pp - 1 units beside `work` units for each microbatch.
double bubble(const Plan& plan, double work) {
  const double fill = plan.pp - 1, busy = work * static_cast<double>(plan.microbatches());
  return busy + fill > 0 ? fill / (busy + fill) : 0;
}

double no_bubble(const Plan&) {
  return 0;
}

constexpr std::array kSchedules = {
#define REHEARSE_SCHEDULE(NAME, ...) ScheduleTraits{.schedule = ScheduleName::NAME, __VA_ARGS__},
#include "plan/schedules.def"
};

}  // namespace

const ScheduleTraits& traits(ScheduleName schedule) {
  for (const ScheduleTraits& each : kSchedules)
    if (each.schedule == schedule) return each;
  throw std::logic_error("a schedule without traits");
}

const ScheduleTraits* schedule_named(std::string_view word) {
  const std::string name = in_lower_case(std::string(word));
  for (const ScheduleTraits& each : kSchedules)
    if (name == each.name || std::ranges::find(each.aliases(), name) != each.aliases().end()) return &each;
  return nullptr;
}

std::string to_string(ScheduleName schedule) {
  return traits(schedule).name;
}

bool is_v_shaped(ScheduleName schedule) {
  return traits(schedule).is_v_shaped;
}

}  // namespace rehearse
