#include "run/long_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/schedules.h"
#include "result/extrapolate.h"
#include "run/band.h"
#include "run/reference.h"
#include "run/size.h"
#include "run/steady.h"

namespace rehearse {

namespace {

// Microbatches of the first step that is tried. A longer one follows where ranks of unlike speed take longer
// to meet. Pipelines fill within a few times as many microbatches as they have stages.
constexpr std::int64_t kLeast = 256, kTimesStages = 4, kLonger = 4;
// The long step has so many times as many, as three and a probe are run.
constexpr std::int64_t kWorthIt = 4;

std::int64_t first_length(const Plan& plan) {
  return std::max(kLeast, kTimesStages * plan.stages());
}

// Whether the engine's timeline is that of tasks that never meet on a link.
bool is_isolated(const Preparation& ready, const Timeline& timeline) {
  const Timeline alone = reference(ready.schedule, ready.tasks, ready.loads);
  const double same_s = 1e-9 * timeline.end();
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r)
    for (std::size_t i = 0; i < timeline.ranks[r].spans.size(); ++i)
      if (std::abs(timeline.ranks[r].spans[i].end - alone.ranks[r].spans[i].end) > same_s) return false;
  return true;
}

class LongStepRun {
 public:
  explicit LongStepRun(const Experiment& experiment)
      : experiment_(experiment),
        microbatches_(experiment.plan.microbatches()),
        unit_(microbatch_unit(experiment.plan)) {}

  LongStep run() {
    for (std::int64_t length = first_length(experiment_.plan); kWorthIt * length <= microbatches_;
         length *= kLonger) {
      if (!experiment_.large &&
          size_of(with_microbatches(experiment_, shorter(2 * length, unit_))).is_large())
        break;
      const std::int64_t round = probe(length);
      if (round > 0 && continue_from(length, round)) break;
      if (is_used()) break;
    }
    if (experiment_.memory_only && !result_.iteration && !is_used())
      continue_from(first_length(experiment_.plan), unit_);
    return std::move(result_);
  }

 private:
  bool is_used() const { return result_.simulator != nullptr; }

  // Microbatches of a step of about `length`, which differs from the long one by whole rounds.
  std::int64_t shorter(std::int64_t length, std::int64_t round) const {
    return length + (microbatches_ - length) % round;
  }

  // The round of a step of this length without contention; 0: it does not repeat.
  std::int64_t probe(std::int64_t length) {
    const Preparation ready = prepare(with_microbatches(experiment_, shorter(length, unit_)));
    const auto round =
        steady_round(ready.schedule, ready.tasks, reference(ready.schedule, ready.tasks, ready.loads), unit_);
    if (!round)
      result_.why_not = fmt::format("the pipeline does not repeat itself within {} microbatches", length);
    return round ? round->microbatches : 0;
  }

  bool continue_from(std::int64_t length, std::int64_t round) {
    const std::int64_t first = shorter(length, round);
    std::array<Report, 3> reports;
    Preparation ready;
    Timeline timeline;
    for (std::size_t i = 0; i < 3; ++i) {
      Experiment shorter_step = with_microbatches(experiment_, first + static_cast<std::int64_t>(i) * round);
      shorter_step.with_band = false;  // found once, below
      ready = prepare(shorter_step);
      timeline = timeline_of(ready);
      reports[i] = report_of(shorter_step, ready, timeline);
    }
    const std::string doubt = doubt_of(ready, timeline, round);
    auto found = extrapolate(reports, experiment_.plan, (microbatches_ - first) / round - 2);
    if (!found) {
      result_.why_not = "memory, traffic or the critical path does not grow evenly with the microbatches";
      return false;
    }
    if (result_.why_not = doubt.empty() ? found->off_line : doubt; !result_.why_not.empty()) {
      if (!experiment_.memory_only) return false;
      found->report.facts.warnings.push_back(fmt::format(
          "times are those of {} microbatches, continued: {}; memory is exact", first, result_.why_not));
    }
    result_.iteration = Iteration{std::move(ready), std::move(timeline), std::move(found->report), {}};
    finish(*result_.iteration);
    return true;
  }

  Timeline timeline_of(const Preparation& ready) {
    if (experiment_.engine == Engine::reference) return reference(ready.schedule, ready.tasks, ready.loads);
    if (!is_used()) result_.simulator = std::make_unique<Simulator>(ready.loads);
    return result_.simulator->run(ready.schedule, ready.tasks, ready.loads);
  }

  // Why the rest of the step may not repeat what was simulated; "": it does.
  std::string doubt_of(const Preparation& ready, const Timeline& timeline, std::int64_t round) const {
    const auto steady = steady_after(ready.schedule, ready.tasks, timeline, round);
    if (!steady) return fmt::format("the pipeline does not repeat itself after {} microbatches", round);
    if (steady->is_uniform || experiment_.engine == Engine::reference || is_isolated(ready, timeline))
      return "";
    return "some ranks are faster than others and share links with them";
  }

  void finish(Iteration& iteration) const {
    const auto count = static_cast<std::size_t>(experiment_.conditions.iterations);
    iteration.step_times_s.assign(count, iteration.report.step_time_s);
    if (experiment_.with_split && experiment_.with_band)
      iteration.report.uncertainty = uncertainty(iteration.report, experiment_);
    // A rank may have room for fewer microbatches only.
    const std::vector<Footprint> gpus = footprints(iteration.report);
    for (std::size_t r = 0; r < gpus.size(); ++r)
      if (!gpus[r].fits()) iteration.report.memory[r].reserved_bytes.reset();
  }

  const Experiment& experiment_;
  std::int64_t microbatches_, unit_;
  LongStep result_;
};

}  // namespace

std::int64_t microbatch_unit(const Plan& plan) {
  if (plan.vpp == 1 || !traits(plan.schedule).takes_chunks) return 1;
  return plan.microbatch_group > 0 ? plan.microbatch_group : plan.pp;
}

Experiment with_microbatches(Experiment experiment, std::int64_t microbatches) {
  if (experiment.stands_for == 0) experiment.stands_for = experiment.plan.microbatches();
  experiment.plan.global_batch = microbatches * experiment.plan.micro_batch * experiment.plan.dp;
  return experiment;
}

std::int64_t microbatches_of_shorter(const Plan& plan) {
  const std::int64_t all = kWorthIt * first_length(plan);
  return all + std::max<std::int64_t>(0, plan.microbatches() - all) % microbatch_unit(plan);
}

bool may_be_shortened(const Experiment& experiment) {
  return !experiment.every_microbatch && !experiment.order && !experiment.conditions.has_jitter() &&
         experiment.stands_for == 0 &&
         experiment.plan.microbatches() >= kWorthIt * first_length(experiment.plan);
}

LongStep run_long_step(const Experiment& experiment) {
  return LongStepRun(experiment).run();
}

}  // namespace rehearse
