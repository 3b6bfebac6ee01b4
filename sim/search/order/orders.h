// How does the search write an order down? As a row of passes for each rank, with only stage and kind. The
// n-th pass of a kind is microbatch n. Microbatches are equal, so no other numbering is better.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"
#include "search/order/problem.h"

namespace rehearse {

// F, B, I, W as OpKind counts them: stage * 4 + kind.
using Pass = std::uint16_t;
inline constexpr Pass kForward = 0, kBackward = 1, kInput = 2, kWeight = 3;
inline constexpr int kMaxOrderStages = 1 << 14;

constexpr Pass pass_of(int stage, Pass kind) {
  return static_cast<Pass>(stage * 4 + kind);
}
constexpr int stage_of_pass(Pass pass) {
  return pass >> 2;
}
constexpr Pass kind_of_pass(Pass pass) {
  return pass & 3;
}
// B and I share one numbering.
constexpr bool takes_gradient(Pass pass) {
  return kind_of_pass(pass) == kBackward || kind_of_pass(pass) == kInput;
}

using RankOrder = std::vector<Pass>;
using RankOrders = std::vector<RankOrder>;

// Only compute ops. Microbatches of a schedule that takes them in another order are renumbered.
RankOrders orders_of(const Schedule& schedule);
Schedule schedule_of(const RankOrders& orders, const OrderProblem& problem);

// The order with fewest live activations: each microbatch goes through all chunks of a rank and back before
// the next one begins.
RankOrders leanest_orders(const OrderProblem& problem);

// Effect of a pass on a rank's activation bytes.
struct PassBytes {
  double peak = 0;    // while it runs, over the bytes that were live before
  double change = 0;  // once it has ended
};
// By Pass.
std::vector<PassBytes> pass_bytes(const OrderProblem& problem);
std::vector<Ticks> pass_ticks(const OrderProblem& problem);

// The peak of a rank's activation bytes.
double peak_bytes(const RankOrder& order, const std::vector<PassBytes>& bytes);
bool fits(const RankOrders& orders, const OrderProblem& problem);

}  // namespace rehearse
