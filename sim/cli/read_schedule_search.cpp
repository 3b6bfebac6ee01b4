#include "cli/read_schedule_search.h"

#include <fmt/core.h>

#include "base/names.h"
#include "base/quantity.h"
#include "cli/interruption.h"
#include "cli/progress.h"
#include "run/fit.h"

namespace rehearse {

namespace {

constexpr double kMostSeconds = 86'400;

}  // namespace

bool is_auto_schedule(const std::string& schedule) {
  return in_lower_case(schedule) == "auto";
}

bool seeks_schedule(const Json& scenario) {
  const Json plan = scenario.is_object() ? scenario.value("plan", Json::object()) : Json();
  const Json schedule = plan.is_object() ? plan.value("schedule", Json()) : Json();
  return schedule.is_string() && is_auto_schedule(schedule.get<std::string>());
}

void read_schedule_search(const JsonReader& top, Scenario& scenario) {
  for (const char* key : {"schedule_memory", "schedule_seconds"})
    if (top.has(key) && !scenario.schedule_search)
      scenario.notes.push_back(fmt::format("{} is ignored: the schedule is not auto", key));
  if (!scenario.schedule_search) return;
  ScheduleSearch& search = *scenario.schedule_search;
  search.seed = scenario.experiment.conditions.seed + 1;
  if (top.has("schedule_seconds")) search.seconds = top.number("schedule_seconds", 0.01, kMostSeconds);
  if (!top.has("schedule_memory")) return;
  const std::string text = top.text("schedule_memory");
  const auto bytes = parse_quantity(text, Dimension::bytes);
  if (!bytes || *bytes <= 0)
    top.fail("schedule_memory", "must be bytes with a unit", "found \"" + text + "\"", "60GB");
  search.memory_bytes = *bytes;
}

void seek_schedule(Scenario& scenario) {
  Experiment& experiment = scenario.experiment;
  if (experiment.plan.pp == 1) {
    scenario.notes.push_back("schedule auto: one pipeline rank has one order only, 1f1b");
    scenario.schedule_search.reset();
    if (scenario.splits_by_cost)
      experiment.plan.layers_per_stage = {static_cast<int>(experiment.model.layers)};
    return;
  }
  if (!experiment.stage_nodes.empty())
    throw InputError(
        {"", "/plan/schedule", "\"auto\" searches for equal GPUs only", "stage_nodes are given", ""});
  ScheduleSearch& search = *scenario.schedule_search;
  note_interruption();
  search.is_stopped = [] { return is_interrupted(); };
  FoundSchedule found = [&] {
    const Activity busy(
        fmt::format("seeking a schedule of {} microbatches on {} pipeline ranks (Ctrl-C: best so far)",
                    experiment.plan.microbatches(), experiment.plan.pp));
    return find_schedule(experiment, search);
  }();
  experiment.plan = found.plan;
  experiment.order = found.order;
  experiment.order_name = "auto";
  if (!found.fits && search.memory_bytes > 0) {
    const double needs = fullest(footprints_of(experiment)).needed_bytes();
    throw InputError({"", "/schedule_memory", "no order was found that needs so little memory",
                      fmt::format("{} given; the leanest named schedule needs {}",
                                  format_bytes(search.memory_bytes), format_bytes(needs)),
                      format_bytes(needs)});
  }
  scenario.found_schedule = std::move(found);
}

std::string in_words(const FoundSchedule& found) {
  if (!found.fits) return "schedule auto: no order fits the memory; this is the named one that needs least\n";
  std::string text = fmt::format(
      "schedule auto: at most {:.1f} % above any schedule of these stages within {} ({} at least)\n",
      100 * found.gap(), format_bytes(found.memory_bytes), format_seconds(found.least_time_s));
  if (found.named)
    text += fmt::format("best named    {} ({})\n", format_seconds(found.named->step_time_s),
                        name_in_words(found.named->plan));
  return text;
}

Json to_json(const FoundSchedule& found, const ScheduleSearch& search) {
  Json json = {{"memory_bytes", found.memory_bytes},
               {"fits", found.fits},
               {"least_step_time_s", found.least_time_s},
               {"gap", found.gap()},
               {"seed", search.seed - 1},
               {"seconds", search.seconds},
               {"best_named", nullptr}};
  if (found.named)
    json["best_named"] = {{"schedule", to_string(found.named->plan.schedule)},
                          {"vpp", found.named->plan.vpp},
                          {"microbatch_group", found.named->plan.microbatch_group},
                          {"step_time_s", found.named->step_time_s}};
  return json;
}

}  // namespace rehearse
