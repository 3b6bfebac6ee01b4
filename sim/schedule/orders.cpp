#include "schedule/orders.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "plan/schedules.h"
#include "schedule/passes.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxMicrobatches = 1'000'000;  // op indices of a rank are 32 bits wide
constexpr int kMaxStages = std::numeric_limits<decltype(Op::stage)>::max();

// broken_rules() states the same rules for the command line. These are the rules that the generators rely on.
void require_orderable(const Plan& plan) {
  const auto reject = [](std::string rule, std::string values, std::string nearest) {
    throw InputError(Violation{{}, {}, std::move(rule), std::move(values), std::move(nearest)});
  };
  const std::int64_t batch = std::int64_t{plan.dp} * plan.micro_batch;
  if (plan.pp < 1 || plan.vpp < 1 || std::int64_t{plan.pp} * plan.vpp > kMaxStages)
    reject(fmt::format("pp and vpp are at least 1, and pp x vpp at most {}", kMaxStages),
           fmt::format("pp = {}, vpp = {}", plan.pp, plan.vpp), "pp = 1, vpp = 1");
  if (batch < 1 || plan.microbatches() < 1 || plan.microbatches() > kMaxMicrobatches)
    reject(fmt::format("an iteration has 1 to {} microbatches", kMaxMicrobatches),
           fmt::format("global batch = {}, micro batch = {}, dp = {}", plan.global_batch, plan.micro_batch,
                       plan.dp),
           fmt::format("global batch = {}", std::max<std::int64_t>(batch, 1)));
  if (is_v_shaped(plan.schedule) && plan.vpp != 2)
    reject(fmt::format("{} needs two model chunks per rank", to_string(plan.schedule)),
           fmt::format("vpp = {}", plan.vpp), "vpp = 2");
  if (plan.vpp > 1 && !is_v_shaped(plan.schedule) && !traits(plan.schedule).takes_chunks)
    reject(fmt::format("{} needs one model chunk per rank", to_string(plan.schedule)),
           fmt::format("vpp = {}", plan.vpp), "vpp = 1, or schedule interleaved-1f1b");
}

Schedule order_named(const Plan& plan) {
  const OrderShape shape = {plan.pp, static_cast<int>(plan.microbatches()), plan.vpp, plan.microbatch_group,
                            plan.pairs_passes() ? 1 : 0};
  switch (plan.schedule) {
#define REHEARSE_SCHEDULE(NAME, ...) \
  case ScheduleName::NAME:           \
    return orders::NAME(shape);
#include "plan/schedules.def"
  }
  throw std::logic_error("no generator for this schedule");
}

}  // namespace

Schedule make_order(const Plan& plan) {
  require_orderable(plan);
  const Schedule order = order_named(plan);
  return plan.pairs_passes() ? pair_passes(order) : order;
}

}  // namespace rehearse
