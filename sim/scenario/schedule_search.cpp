#include "scenario/schedule_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "base/interruption.h"
#include "base/names.h"
#include "base/progress.h"
#include "base/quantity.h"
#include "run/fit.h"
#include "sweep/run_points.h"

namespace rehearse {

namespace {

constexpr double kMaxSeconds = 86'400;

// Rounds up to the three digits that format_bytes() shows.
double rounded_up(double bytes) {
  const double digit = std::pow(10, std::floor(std::log10(bytes)) - 2);
  return std::ceil(bytes / digit) * digit;
}

double step_time_of(Experiment experiment) {
  experiment.with_split = experiment.with_band = experiment.with_reserved = false;
  experiment.conditions.iterations = 1;
  return run_iteration(experiment).report.step_time_s;
}

// Each in a process of its own where one of them uses SimGrid, which runs once a process.
std::vector<double> step_times_of(const std::vector<Experiment>& experiments) {
  std::vector<double> seconds(experiments.size());
  const bool is_simulated = std::ranges::any_of(
      experiments, [](const Experiment& each) { return each.engine != Engine::reference; });
  if (!is_simulated) {
    std::ranges::transform(experiments, seconds.begin(), step_time_of);
    return seconds;
  }
  run_in_processes(
      first_points(experiments.size()),
      [&](Point i) {
        return Row{RowState::done, "", Json(step_time_of(experiments[i]))};
      },
      1, [] { return false; },
      [&](Point i, const Row& row) {
        if (row.state != RowState::done)
          throw std::runtime_error("an order that was found cannot run: " + row.reason);
        seconds[i] = row.report.get<double>();
      });
  return seconds;
}

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
  if (top.has("schedule_seconds")) search.seconds = top.number("schedule_seconds", 0.01, kMaxSeconds);
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
    throw InputError({"", "/plan/schedule", "\"auto\" searches for equal GPUs only", "stage_nodes are given",
                      "a named schedule (`rehearse list schedules`), or no stage_nodes"});
  ScheduleSearch search = *scenario.schedule_search;
  std::vector<std::string>& notes = scenario.notes;
  if (const std::string option = unproven_option(experiment.plan); !option.empty())
    notes.push_back(fmt::format("schedule auto: with {} the search proves no bound", option));
  const NotedInterruption noted;
  search.is_stopped = is_interrupted;
  std::optional<Activity> busy;
  busy.emplace(fmt::format("seeking a schedule of {} microbatches on {} pipeline ranks (Ctrl-C: best so far)",
                           experiment.plan.microbatches(), experiment.plan.pp));
  search.step_times = [&](const std::vector<Experiment>& experiments) {
    busy.reset();  // no other thread may run where processes are forked
    return step_times_of(experiments);
  };
  FoundSchedule found = find_schedule(experiment, search);
  if (is_interrupted())
    notes.emplace_back("schedule auto: the search was interrupted; this is the best so far");
  experiment.plan = found.plan;
  experiment.order = found.order;
  experiment.order_name = "auto";
  if (!found.fits && search.memory_bytes > 0) {
    const double needs = fullest(footprints_of(experiment)).needed_bytes();
    throw InputError({"", "/schedule_memory", "no order was found that needs so little memory",
                      fmt::format("{} given; one microbatch at a time needs {}",
                                  format_bytes(search.memory_bytes), format_bytes(needs)),
                      format_bytes(rounded_up(needs))});
  }
  scenario.found_schedule = std::move(found);
}

std::string in_words(const FoundSchedule& found) {
  if (!found.fits)
    return "schedule auto: no order fits the memory; this one holds one microbatch at a time\n";
  std::string text = fmt::format("schedule auto: the best that was found within {}; no bound is proven\n",
                                 format_bytes(found.memory_bytes));
  if (found.least_time_s)
    text = fmt::format(
        "schedule auto: at most {:.1f} % above any schedule of these stages within {} ({} at least)\n",
        100 * *found.gap(), format_bytes(found.memory_bytes), format_seconds(*found.least_time_s));
  if (found.named)
    text += fmt::format("best named    {} ({})\n", format_seconds(found.named->step_time_s),
                        name_in_words(found.named->plan));
  return text;
}

Json to_json(const FoundSchedule& found, const ScheduleSearch& search) {
  Json json = {{"memory_bytes", found.memory_bytes},
               {"fits", found.fits},
               {"least_step_time_s", found.least_time_s ? Json(*found.least_time_s) : Json()},
               {"gap", found.least_time_s ? Json(*found.gap()) : Json()},
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
