#include "run/size.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "run/conditions.h"
#include "run/long_step.h"

namespace rehearse {

namespace {

// Fewer stages x microbatches x ranks are not large, whatever the schedule.
constexpr double kSmall = 20'000;

double ops_of(const Schedule& schedule) {
  double ops = 0;
  for (const RankOps& rank : schedule.ranks) ops += static_cast<double>(rank.size());
  return ops;
}

// Each rank's list is that of its pipeline rank.
double lists_of(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  if (experiment.fold == Fold::none) return static_cast<double>(plan.gpus()) / plan.pp;
  return static_cast<double>(replicas_to_walk(plan, experiment.cluster, experiment.conditions).size());
}

RunSize sized(double ops, const Experiment& experiment) {
  RunSize size;
  const double lists = lists_of(experiment);
  size.ops = ops * lists * experiment.conditions.iterations;
  size.bytes = kBaseBytes + (kBytesOfOp + experiment.output.bytes) * ops * lists;
  size.seconds = kSecondsOfOp * size.ops + experiment.output.seconds * ops * lists;
  size.terms = fmt::format(
      "{} microbatches x {:.4g} ops of {:.6g} simulated ranks", experiment.plan.microbatches(),
      ops * lists / static_cast<double>(experiment.plan.microbatches()), lists * experiment.plan.pp);
  if (experiment.conditions.iterations > 1)
    size.terms += fmt::format(" x {} iterations", experiment.conditions.iterations);
  return size;
}

// The largest number of microbatches of a batch that is not large.
std::int64_t affordable(const RunSize& size, std::int64_t microbatches, std::int64_t unit) {
  const double share =
      std::min((kMaxRunBytes - kBaseBytes) / (size.bytes - kBaseBytes), kMaxRunSeconds / size.seconds);
  const auto most = static_cast<std::int64_t>(share * static_cast<double>(microbatches));
  return most / unit * unit;
}

}  // namespace

RunSize size_of(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  if (experiment.order) return sized(3 * ops_of(*experiment.order), experiment);  // with sends and receives
  const std::int64_t unit = microbatch_unit(plan), most = plan.microbatches();
  const std::int64_t least = std::min(most, (2 * plan.stages() / unit + 1) * unit + most % unit);
  const double few = ops_of(complete_order(with_microbatches(experiment, least)));
  if (least + unit > most) return sized(few, experiment);
  const double more = ops_of(complete_order(with_microbatches(experiment, least + unit)));
  return sized(few + (more - few) * static_cast<double>(most - least) / static_cast<double>(unit),
               experiment);
}

RunSize expected_size(const Experiment& experiment) {
  if (!may_be_shortened(experiment)) return size_of(experiment);
  return size_of(with_microbatches(experiment, microbatches_of_shorter(experiment.plan)));
}

std::string in_words(const RunSize& size) {
  return fmt::format("about {} and {}", format_bytes(size.bytes),
                     size.seconds < 90 ? fmt::format("{:.0f} s", size.seconds)
                                       : fmt::format("{:.0f} min", size.seconds / 60));
}

void require_affordable(const Experiment& experiment, const std::string& why) {
  const Plan& plan = experiment.plan;
  const double least = lists_of(experiment) * plan.stages() * static_cast<double>(plan.microbatches()) *
                       experiment.conditions.iterations;
  if (experiment.large || least <= kSmall) return;
  const RunSize size = size_of(experiment);
  if (!size.is_large()) return;
  const std::int64_t most = affordable(size, plan.microbatches(), microbatch_unit(plan));
  const std::string nearest = most > 0 ? fmt::format("global batch {} ({} microbatches), or --large",
                                                     most * plan.micro_batch * plan.dp, most)
                                       : "--large";
  throw InputError(
      {"", "global_batch",
       fmt::format("a run takes at most {} of memory and {:.0f} min{}", format_bytes(kMaxRunBytes),
                   kMaxRunSeconds / 60, why.empty() ? "" : "; it cannot be shortened: " + why),
       fmt::format("{}: {}", in_words(size), size.terms), nearest});
}

}  // namespace rehearse
