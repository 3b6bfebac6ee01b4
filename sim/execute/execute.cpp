#include "execute/execute.h"

#include <fmt/core.h>

#include <algorithm>

#include "schedule/check.h"

namespace rehearse {

namespace {

void require_runnable(const Training& training, const ExecuteOptions& options) {
  std::vector<Violation> violations;
  if (options.iterations < 1)
    violations.push_back({"", "iterations", "at least one step must be counted",
                          fmt::format("iterations = {}", options.iterations), "1"});
  if (options.warmup < 0)
    violations.push_back(
        {"", "warmup", "must not be negative", fmt::format("warmup = {}", options.warmup), "0"});
  for (const std::string& fault : check_schedule(training.schedule, training.plan))
    violations.push_back({"", "schedule", fault, "", ""});
  if (!violations.empty()) throw InputError(std::move(violations));
}

// Index of the value with as many below as above it; of two such values, the smaller.
std::size_t median_of(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return static_cast<std::size_t>(std::ranges::find(values, *middle) - values.begin());
}

void run_steps(RankPool& rank_pool, const ExecuteOptions& options, const Plan& plan, Execution& execution) {
  std::vector<Timeline> timelines;
  for (int step = 0; step < options.warmup + options.iterations; ++step) {
    StepResult result = rank_pool.step();
    execution.losses.push_back(result.loss);
    if (plan.clip_grad > 0) execution.gradient_norms.push_back(result.gradient_norm);
    if (scales_loss(plan)) execution.loss_scales.push_back(result.loss_scale);
    if (result.skipped) execution.skipped_steps.push_back(step);
    if (step < options.warmup) continue;
    execution.step_times_s.push_back(result.timeline.end());
    execution.clock_error_s = std::max(execution.clock_error_s, result.clock_error_s);
    timelines.push_back(std::move(result.timeline));
  }
  execution.timeline = std::move(timelines[median_of(execution.step_times_s)]);
  execution.clocks = rank_pool.how_clocks_compare();
  execution.tracing_s = rank_pool.tracing_s();
  execution.peak_activation_bytes = rank_pool.peak_activation_bytes();
}

}  // namespace

Execution execute(const Training& training, const ExecuteOptions& options) {
  return execute(training, options, {});
}

Execution execute(const Training& training, const ExecuteOptions& options, DeviceSet device_set) {
  require_runnable(training, options);
  RankPool rank_pool(training, options.watch, std::move(device_set));
  Execution execution;
  try {
    run_steps(rank_pool, options, training.plan, execution);
  } catch (const std::exception&) {
    if (options.keep_partial) options.keep_partial(rank_pool.partial());
    throw;
  }
  return execution;
}

}  // namespace rehearse
