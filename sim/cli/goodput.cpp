#include "run/goodput.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/say.h"
#include "cli/verbs.h"

namespace rehearse {

namespace {

constexpr double kHour = 3600, kDay = 24 * kHour;
constexpr int kCourses = 200;

struct GoodputOptions {
  std::int64_t gpus = 0;
  double mtbf_hours = 0, checkpoint_s = 0, restart_s = 0, days = 30, interval_s = 0;
  std::uint64_t seed = 0;
  bool json = false;
};

// With fewer failures the mean is unreliable; more take long to simulate.
constexpr double kFewestFailures = 10, kMaxFailures = 20000;

constexpr double kMinDays = 0.01, kMaxDays = 3650;

// The suggested change: days that cover enough failures. Where no allowed number does, a GPU failure rate
// that suffices.
std::string nearest_legal(const GoodputOptions& options, double fewest_days, double most_days) {
  const double gpu_hours_a_day = static_cast<double>(options.gpus) * kDay / kHour;
  if (fewest_days > kMaxDays)
    return fmt::format("--mtbf-hours {:.10g}", kMaxDays / kFewestFailures * gpu_hours_a_day);
  if (most_days < kMinDays)
    return fmt::format("--mtbf-hours {:.10g}", kMinDays / kMaxFailures * gpu_hours_a_day);
  if (options.days < fewest_days)
    return fmt::format("--days {:g}", std::min(kMaxDays, std::ceil(fewest_days)));
  return fmt::format("--days {:.10g}", std::floor(most_days / kMinDays) * kMinDays);
}

Failures failures_of(const GoodputOptions& options) {
  const Failures failures{options.mtbf_hours * kHour / static_cast<double>(options.gpus),
                          options.checkpoint_s, options.restart_s};
  const double mean_days = failures.mean_between_s / kDay;
  const double fewest_days = kFewestFailures * mean_days, most_days = kMaxFailures * mean_days;
  if (options.days < fewest_days || options.days > most_days)
    throw InputError({"command line", "--days",
                      fmt::format("must cover between {:g} and {:g} failures", kFewestFailures, kMaxFailures),
                      fmt::format("{:g} days, one failure in {:.4g}", options.days, mean_days),
                      nearest_legal(options, fewest_days, most_days)});
  return failures;
}

struct TableRow {
  const char* by;
  double interval_s, expected, simulated;
};

std::vector<TableRow> compare_intervals(const Failures& failures, const GoodputOptions& options) {
  const double days_s = options.days * kDay;
  std::vector<TableRow> rows;
  const auto add = [&](const char* by, double interval_s) {
    double sum = 0;
    for (std::uint64_t course = 0; course < kCourses; ++course)
      sum += simulated_goodput(failures, interval_s, days_s, options.seed + course);
    rows.push_back({by, interval_s, expected_goodput(failures, interval_s), sum / kCourses});
  };
  if (options.interval_s > 0) add("given", options.interval_s);
  add("young", young_interval_s(failures));
  add("daly", daly_interval_s(failures));
  add("simulated", best_simulated_interval(failures, days_s, options.seed, kCourses).interval_s);
  return rows;
}

void print_json(const Failures& failures, const std::vector<TableRow>& rows, const GoodputOptions& options) {
  Json intervals = Json::array();
  for (const TableRow& row : rows)
    intervals.push_back({{"by", row.by},
                         {"interval_s", row.interval_s},
                         {"expected_goodput", row.expected},
                         {"simulated_goodput", row.simulated}});
  const Json json = {{"gpus", options.gpus},
                     {"mean_between_failures_s", failures.mean_between_s},
                     {"checkpoint_s", failures.checkpoint_s},
                     {"restart_s", failures.restart_s},
                     {"days", options.days},
                     {"courses", kCourses},
                     {"intervals", intervals}};
  fmt::print("{}\n", json.dump(2));
}

void show(const GoodputOptions& options) {
  const Failures failures = failures_of(options);
  const std::vector<TableRow> rows = compare_intervals(failures, options);
  if (options.json) return print_json(failures, rows, options);
  say("{} GPUs, one failure in {:.2f} h; checkpoint {:g} s, restart {:g} s\n\n", options.gpus,
      failures.mean_between_s / kHour, failures.checkpoint_s, failures.restart_s);
  say("{:<28}{:>12}{:>12}{:>12}\n", "checkpoint every", "", "expected", "simulated");
  for (const TableRow& row : rows)
    say("  {:<26}{:>10.1f} s{:>10.2f} %{:>10.2f} %\n", row.by, row.interval_s, 100 * row.expected,
        100 * row.simulated);
  say("\nShare of {:g} days spent on training, mean of {} random runs.\n", options.days, kCourses);
}

}  // namespace

Verb goodput_verb() {
  const auto options = std::make_shared<GoodputOptions>();
  Verb verb{"goodput", "share of time spent on training despite failures, and the best checkpoint interval"};
  const auto number = [&](const char* name, double& target, const char* help, const char* value,
                          std::pair<double, double> bounds, bool required) {
    verb.add({.names = {name},
              .target = &target,
              .help = help,
              .value = value,
              .bounds = bounds,
              .required = required});
  };
  const std::pair<double, double> positive = {1e-3, 1e9};
  verb.add({.names = {"--gpus"},
            .target = &options->gpus,
            .help = "GPUs of the job",
            .value = "N",
            .bounds = {{1, 1 << 30}},
            .required = true});
  number("--mtbf-hours", options->mtbf_hours,
         "mean time between failures per GPU, with its share of node and network failures", "H", positive,
         true);
  number("--checkpoint-seconds", options->checkpoint_s, "seconds that training stops for a checkpoint", "S",
         positive, true);
  number("--restart-seconds", options->restart_s, "seconds from a failure to the next training step", "S",
         {0, 1e9}, true);
  number("--interval-seconds", options->interval_s,
         "seconds between two checkpoints, to compare with the best interval", "S", positive, false);
  number("--days", options->days, "simulated days of each random run; default: 30", "D", {kMinDays, kMaxDays},
         false);
  verb.add({{"--seed"}, &options->seed, "seed of the random runs", "N"});
  verb.add({{"--json"}, &options->json, "print one JSON object"});
  verb.footer =
      "Example: Llama 3 405B met 419 unexpected interruptions in 54 days on 16,384 GPUs (arXiv 2407.21783, "
      "section\n"
      "3.3.4), that is one in 50,700 hours of a GPU:\n"
      "  rehearse goodput --gpus 16384 --mtbf-hours 50700 --checkpoint-seconds 20 --restart-seconds 600 "
      "--days 54";
  verb.run = [options] {
    show(*options);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
