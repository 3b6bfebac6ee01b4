#include "order_cases.h"

#include <algorithm>
#include <random>

#include "schedule/orders.h"
#include "search/order/of_plan.h"

namespace rehearse {

namespace {

OrderCase laid_out(int ranks, int microbatches, int chunks, Laid laid) {
  OrderCase given;
  given.plan.pp = ranks;
  given.plan.vpp = chunks;
  given.plan.global_batch = microbatches;
  given.plan.overlap_p2p = true;
  given.plan.schedule = laid == Laid::v ? ScheduleName::zb_v
                        : chunks > 1    ? ScheduleName::interleaved
                                        : ScheduleName::one_f_one_b;
  for (const Plan& plan : named_plans(given.plan)) given.named.push_back(orders_of(make_order(plan)));
  OrderProblem& problem = given.problem;
  problem.ranks = ranks;
  problem.microbatches = microbatches;
  for (int stage = 0; stage < ranks * chunks; ++stage)
    problem.rank_of.push_back(laid == Laid::v && stage >= ranks ? 2 * ranks - 1 - stage : stage % ranks);
  problem.stages.resize(problem.rank_of.size());
  problem.capacity.assign(static_cast<std::size_t>(ranks), 1e12);
  problem.step.assign(static_cast<std::size_t>(ranks), 0);
  return given;
}

}  // namespace

void limit_to(OrderCase& given, const RankOrders& orders) {
  const std::vector<PassBytes> bytes = pass_bytes(given.problem);
  for (std::size_t rank = 0; rank < orders.size(); ++rank)
    given.problem.capacity[rank] = peak_bytes(orders[rank], bytes);
}

OrderCase order_case(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const int ranks = 2 + below(4);
  const Laid laid = below(3) == 0 ? Laid::v : Laid::loop;
  const int chunks = laid == Laid::v ? 2 : 1 + below(3);
  OrderCase given = laid_out(ranks, ranks + below(2 * ranks + 1), chunks, laid);
  OrderProblem& problem = given.problem;
  for (std::size_t s = 0; s < problem.stages.size(); ++s) {
    StageCosts& stage = problem.stages[s];
    const int base = 1000 + below(1000);
    stage.forward = base;
    stage.input = base + below(300);
    stage.weight = base - below(500);
    stage.backward = stage.input + stage.weight - below(400);
    const bool crosses = s + 1 < problem.stages.size() && problem.rank_of[s] != problem.rank_of[s + 1];
    if (crosses) stage.to_next = below(300);
    if (s > 0 && problem.rank_of[s] != problem.rank_of[s - 1]) stage.to_previous = below(300);
    stage.saved = 50 + below(50);
    stage.kept = stage.saved + below(60) - 20;
    stage.forward_peak = stage.backward_peak = stage.saved + below(40);
    stage.input_peak = std::max(stage.saved, stage.kept) + below(40);
    stage.weight_peak = stage.kept + below(10);
    stage.reduction = below(2000);
    stage.buckets = 1 + below(4);
  }
  for (Ticks& step : problem.step) step = below(500);
  if (below(4) > 0)
    limit_to(given, given.named[static_cast<std::size_t>(below(static_cast<int>(given.named.size())))]);
  return given;
}

OrderCase uniform_case(int ranks, int microbatches, int chunks, Laid laid) {
  OrderCase given = laid_out(ranks, microbatches, chunks, laid);
  const Ticks unit = ticks_of(1) / chunks;
  for (StageCosts& stage : given.problem.stages) {
    stage.forward = stage.input = stage.weight = unit;
    stage.backward = 2 * unit;
    stage.saved = stage.kept = stage.forward_peak = stage.backward_peak = stage.input_peak =
        stage.weight_peak = 1.0 / chunks;
  }
  return given;
}

}  // namespace rehearse
