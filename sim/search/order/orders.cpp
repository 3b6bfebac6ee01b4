#include "search/order/orders.h"

#include <algorithm>
#include <cmath>

namespace rehearse {

Ticks ticks_of(double seconds) {
  return static_cast<Ticks>(std::llround(seconds * kTicksPerSecond));
}

double seconds_of(Ticks ticks) {
  return static_cast<double>(ticks) / kTicksPerSecond;
}

RankOrders orders_of(const Schedule& schedule) {
  RankOrders orders;
  for (const RankOps& ops : schedule.ranks) {
    RankOrder& order = orders.emplace_back();
    for (const Op& op : ops.ops())
      if (is_compute(op.kind)) order.push_back(pass_of(op.stage, static_cast<Pass>(op.kind)));
  }
  return orders;
}

Schedule schedule_of(const RankOrders& orders, const OrderProblem& problem) {
  Schedule schedule{problem.ranks, problem.stage_count(), problem.microbatches, {}};
  std::vector<int> forwards(problem.stages.size()), backwards(problem.stages.size());
  std::vector<std::vector<int>> waiting(problem.stages.size());  // microbatches whose W is still to run
  std::vector<std::size_t> weights(problem.stages.size());
  for (const RankOrder& order : orders) {
    RankOps& ops = schedule.ranks.emplace_back();
    ops.reserve(order.size());
    for (const Pass pass : order) {
      const auto stage = static_cast<std::size_t>(stage_of_pass(pass));
      int microbatch = 0;
      if (kind_of_pass(pass) == kForward) microbatch = forwards[stage]++;
      if (takes_gradient(pass)) microbatch = backwards[stage]++;
      if (kind_of_pass(pass) == kInput) waiting[stage].push_back(microbatch);
      if (kind_of_pass(pass) == kWeight) microbatch = waiting[stage][weights[stage]++];
      ops.add(make_op(static_cast<OpKind>(kind_of_pass(pass)), static_cast<int>(stage), microbatch));
    }
  }
  return schedule;
}

RankOrders leanest_orders(const OrderProblem& problem) {
  RankOrders orders(static_cast<std::size_t>(problem.ranks));
  const auto rank_of = [&](int stage) -> RankOrder& {
    return orders[static_cast<std::size_t>(problem.rank_of[static_cast<std::size_t>(stage)])];
  };
  for (int microbatch = 0; microbatch < problem.microbatches; ++microbatch) {
    for (int s = 0; s < problem.stage_count(); ++s) rank_of(s).push_back(pass_of(s, kForward));
    for (int s = problem.stage_count(); s-- > 0;) {
      const StageCosts& stage = problem.stages[static_cast<std::size_t>(s)];
      if (stage.backward_peak <= std::max(stage.input_peak, stage.weight_peak)) {
        rank_of(s).push_back(pass_of(s, kBackward));
      } else {
        rank_of(s).insert(rank_of(s).end(), {pass_of(s, kInput), pass_of(s, kWeight)});
      }
    }
  }
  return orders;
}

std::vector<PassBytes> pass_bytes(const OrderProblem& problem) {
  std::vector<PassBytes> bytes;
  bytes.reserve(4 * problem.stages.size());
  for (const StageCosts& stage : problem.stages) {
    bytes.push_back({stage.forward_peak, stage.saved});
    bytes.push_back({stage.backward_peak - stage.saved, -stage.saved});
    bytes.push_back({stage.input_peak - stage.saved, stage.kept - stage.saved});
    bytes.push_back({stage.weight_peak - stage.kept, -stage.kept});
  }
  return bytes;
}

std::vector<Ticks> pass_ticks(const OrderProblem& problem) {
  std::vector<Ticks> ticks;
  ticks.reserve(4 * problem.stages.size());
  for (const StageCosts& stage : problem.stages)
    ticks.insert(ticks.end(), {stage.forward, stage.backward, stage.input, stage.weight});
  return ticks;
}

double peak_bytes(const RankOrder& order, const std::vector<PassBytes>& bytes) {
  double live = 0, most = 0;
  for (const Pass pass : order) {
    most = std::max(most, live + bytes[pass].peak);
    live += bytes[pass].change;
  }
  return most;
}

bool fits(const RankOrders& orders, const OrderProblem& problem) {
  const std::vector<PassBytes> bytes = pass_bytes(problem);
  for (std::size_t rank = 0; rank < orders.size(); ++rank)
    if (peak_bytes(orders[rank], bytes) > problem.capacity[rank]) return false;
  return true;
}

}  // namespace rehearse
