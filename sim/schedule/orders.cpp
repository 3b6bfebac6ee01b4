#include "schedule/orders.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "schedule/passes.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxMicrobatches = 1'000'000;  // op indices of a rank are 32 bits wide
constexpr int kMaxStages = std::numeric_limits<decltype(Op::stage)>::max();

// broken_rules() says the same for the command line; here stands what the generators rest on.
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
  if (plan.vpp > 1 && !is_v_shaped(plan.schedule) && plan.schedule != ScheduleName::interleaved)
    reject(fmt::format("{} needs one model chunk per rank", to_string(plan.schedule)),
           fmt::format("vpp = {}", plan.vpp), "vpp = 1, or schedule interleaved-1f1b");
}

Schedule order_named(const Plan& plan) {
  const int microbatches = static_cast<int>(plan.microbatches());
  const int ahead = plan.pairs_passes() ? 1 : 0;
  switch (plan.schedule) {
    case ScheduleName::gpipe:
      return gpipe(plan.pp, microbatches);
    case ScheduleName::one_f_one_b:
      return one_f_one_b(plan.pp, microbatches, ahead);
    case ScheduleName::interleaved:
      return interleaved_1f1b(plan.pp, plan.vpp, microbatches, plan.microbatch_group, ahead);
    case ScheduleName::zb_h1:
      return zb_h1(plan.pp, microbatches);
    case ScheduleName::zb_h2:
      return zb_h2(plan.pp, microbatches);
    case ScheduleName::zb_v:
      return zb_v(plan.pp, microbatches);
    case ScheduleName::dualpipe_v:
      return dualpipe_v(plan.pp, microbatches);
    case ScheduleName::v_half:
      return v_half(plan.pp, microbatches);
    case ScheduleName::v_min:
      return v_min(plan.pp, microbatches);
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
