#include "plan/schedules.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "base/names.h"
#include "plan/plan.h"

namespace rehearse {

namespace {

// `fill` of pp - 1 units beside `work` units a microbatch.
double bubble(const Plan& plan, double work) {
  const double fill = plan.pp - 1, busy = work * static_cast<double>(plan.microbatches());
  return busy + fill > 0 ? fill / (busy + fill) : 0;
}

double none(const Plan&) {
  return 0;
}
double of_1f1b(const Plan& plan) {
  return bubble(plan, 1);
}

// What others call them, in lower case.
constexpr std::array kNamesOfInterleaved = {"interleaved", "interleaved1f1b"};
constexpr std::array kNamesOfZbH1 = {"zb1p"};
constexpr std::array kNamesOfZbH2 = {"zb2p"};
constexpr std::array kNamesOfZbV = {"zbv", "zbvzerobubble"};
constexpr std::array kNamesOfDualpipeV = {"dualpipev"};

constexpr std::array kSchedules = {
    ScheduleTraits{.schedule = ScheduleName::gpipe,
                   .name = "gpipe",
                   .about = "all forward passes, then all backward passes",
                   .source = "Huang et al. 2019",
                   .overlaps_p2p = false,
                   .ideal_bubble = of_1f1b},
    ScheduleTraits{.schedule = ScheduleName::one_f_one_b,
                   .name = "1f1b",
                   .about = "warm-up, then one forward and one backward pass in turn",
                   .source = "Narayanan et al. 2019",
                   .overlaps_p2p = false,
                   .ideal_bubble = of_1f1b},
    ScheduleTraits{.schedule = ScheduleName::interleaved,
                   .name = "interleaved-1f1b",
                   .aliases = kNamesOfInterleaved,
                   .about = "1F1B over vpp model chunks a rank: a smaller bubble, more messages",
                   .source = "Narayanan et al. 2021, section 2.2",
                   .needs = "with vpp > 1: microbatches in groups of pp",
                   .takes_chunks = true,
                   .ideal_bubble = [](const Plan& plan) { return bubble(plan, plan.vpp); }},
    ScheduleTraits{.schedule = ScheduleName::zb_h1,
                   .name = "zb-h1",
                   .aliases = kNamesOfZbH1,
                   .about = "split backward passes at the memory of 1F1B",
                   .source = "Qi et al. 2023, section 2.3",
                   .splits_backward = true,
                   .ideal_bubble = [](const Plan& plan) { return bubble(plan, 3); }},
    ScheduleTraits{
        .schedule = ScheduleName::zb_h2,
        .name = "zb-h2",
        .aliases = kNamesOfZbH2,
        .about = "split backward passes at twice the memory of 1F1B; no bubble without --sync-step",
        .source = "Qi et al. 2023, section 2.3",
        .needs = "memory for up to 2 pp - 1 microbatches",
        .splits_backward = true,
        .ideal_bubble = [](const Plan& plan) { return plan.sync_step ? bubble(plan, 3) : 0; }},
    ScheduleTraits{.schedule = ScheduleName::zb_v,
                   .name = "zb-v",
                   .aliases = kNamesOfZbV,
                   .about = "split backward passes over a V of two chunks, at the memory of 1F1B",
                   .source = "Qi et al. 2023, section 6",
                   .is_v_shaped = true,
                   .splits_backward = true,
                   .is_sought = true,
                   .ideal_bubble = [](const Plan& plan) { return plan.sync_step ? bubble(plan, 6) : 0; }},
    ScheduleTraits{.schedule = ScheduleName::dualpipe_v,
                   .name = "dualpipe-v",
                   .aliases = kNamesOfDualpipeV,
                   .about = "DualPipe cut in half: a V of two chunks, forward beside backward passes",
                   .source = "DeepSeek-AI 2024, its V-shaped half",
                   .needs = "2 pp microbatches or more",
                   .is_v_shaped = true,
                   .splits_backward = true,
                   .ideal_bubble = [](const Plan& plan) { return bubble(plan, 6); }},
    ScheduleTraits{.schedule = ScheduleName::v_half,
                   .name = "v-half",
                   .about = "a V of two chunks at half the activation memory of 1F1B",
                   .source = "Qi et al. 2024, sections 3 and 4",
                   .is_v_shaped = true,
                   .splits_backward = true,
                   .is_sought = true,
                   .ideal_bubble = none},
    ScheduleTraits{.schedule = ScheduleName::v_min,
                   .name = "v-min",
                   .about = "a V of two chunks at a third of the activation memory of 1F1B",
                   .source = "Qi et al. 2024, sections 3 and 4",
                   .is_v_shaped = true,
                   .splits_backward = true,
                   .is_sought = true,
                   .ideal_bubble = none},
};
static_assert(std::tuple_size_v<decltype(kSchedules)> == kScheduleNames.size());

}  // namespace

const ScheduleTraits& traits(ScheduleName schedule) {
  for (const ScheduleTraits& each : kSchedules)
    if (each.schedule == schedule) return each;
  throw std::logic_error("a schedule without traits");
}

const ScheduleTraits* schedule_named(std::string_view word) {
  const std::string name = in_lower_case(std::string(word));
  for (const ScheduleTraits& each : kSchedules)
    if (name == each.name || std::ranges::find(each.aliases, name) != each.aliases.end()) return &each;
  return nullptr;
}

std::string to_string(ScheduleName schedule) {
  return traits(schedule).name;
}

bool is_v_shaped(ScheduleName schedule) {
  return traits(schedule).is_v_shaped;
}

}  // namespace rehearse
