// How does the search write an order down? Per rank a row of passes: stage and kind alone. The n-th pass of
// a kind is microbatch n: microbatches are equal, so no other numbering is better.
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
// B and I are numbered together.
constexpr bool takes_gradient(Pass pass) {
  return kind_of_pass(pass) == kBackward || kind_of_pass(pass) == kInput;
}

using RankOrder = std::vector<Pass>;
using RankOrders = std::vector<RankOrder>;

// Compute ops alone. Microbatches of a schedule that takes them in another order are renumbered.
RankOrders orders_of(const Schedule& schedule);
Schedule schedule_of(const RankOrders& orders, const OrderProblem& problem);

// The order that holds fewest activations: each microbatch goes through all chunks of a rank and back before
// the next one begins.
RankOrders leanest_orders(const OrderProblem& problem);

// What a pass does to a rank's activations.
struct PassBytes {
  double peak = 0;    // while it runs, over what was live before
  double change = 0;  // once it has ended
};
// By Pass.
std::vector<PassBytes> pass_bytes(const OrderProblem& problem);
std::vector<Ticks> pass_ticks(const OrderProblem& problem);

// The most bytes of activations of a rank at any time.
double peak_bytes(const RankOrder& order, const std::vector<PassBytes>& bytes);
bool fits(const RankOrders& orders, const OrderProblem& problem);

}  // namespace rehearse
