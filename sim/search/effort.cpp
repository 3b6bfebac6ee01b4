#include "search/effort.h"

#include <algorithm>

namespace rehearse {

namespace {

// Assumed, after a few timings on a busy Xeon at 2.1 GHz. Not calibrated.
constexpr double kPricedPlan_s = 3e-4;                                    // least_step_time() and memory
constexpr double kRunPlan_s = 2e-3, kRunOp_s = 2e-6, kRunGpu_s = 1.2e-7;  // least_simulated_s(), or a run
constexpr double kRunShare = 0.04;                                        // of the plans
constexpr double kOpBytes = 300, kGpuBytes = 60;

// Passes of all microbatches through all stages, with their messages.
double ops_of(const Plan& plan) {
  constexpr double kOpsOfAPass = 3;
  return 2 * kOpsOfAPass * plan.stages() * static_cast<double>(plan.microbatches());
}

}  // namespace

// The plans that are run are few, so the median stands for them: a mean is that of the longest schedules.
SearchEffort effort_of(const std::vector<Plan>& plans) {
  if (plans.empty()) return {};
  std::vector<double> seconds, bytes;
  for (const Plan& plan : plans) {
    const double ops = ops_of(plan), gpus = plan.gpus();
    seconds.push_back(kRunPlan_s + kRunOp_s * ops + kRunGpu_s * gpus);
    bytes.push_back(kOpBytes * ops + kGpuBytes * gpus);
  }
  const auto median = [](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
  };
  const auto count = static_cast<double>(plans.size());
  return {count * (kPricedPlan_s + kRunShare * median(seconds)), count * sizeof(Plan) + median(bytes)};
}

}  // namespace rehearse
