// The one stream of events that the peak, the allocator's replay and the list of live microbatches read.
#include "memory/activation_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "result/cases.h"
#include "schedule/orders.h"
#include "schedule/passes.h"

namespace rehearse {
namespace {

using testing::ElementsAre;

std::vector<std::string> events_of(const RankOps& ops, std::size_t stages) {
  const std::vector<std::string> kinds = {"reloads", "offloaded", "begins", "ends", "ran before"};
  std::vector<std::string> events;
  walk_activations(ops, stages, [&](const ActivationEvent& event) {
    std::string text = kinds[static_cast<std::size_t>(event.kind)] + " " + to_string(ops[event.op]);
    if (event.backward != nullptr) text += " with " + to_string(*event.backward);
    events.push_back(text);
  });
  return events;
}

TEST(ActivationEvents, OfAPassAreItsBeginningAndItsEnd) {
  const Schedule order = orders::one_f_one_b({2, 2});
  EXPECT_THAT(events_of(order.ranks[1], 2), ElementsAre("begins 1F0", "ends 1F0", "begins 1B0", "ends 1B0",
                                                        "begins 1F1", "ends 1F1", "begins 1B1", "ends 1B1"));
  EXPECT_TRUE(events_of(order.ranks[1], 1).empty()) << "stage 1 is none of one";
}

TEST(ActivationEvents, OfPassesByTurnsNameBothAndNotTheSecondAgain) {
  const Schedule order = pair_passes(orders::one_f_one_b({2, 3, 1, 0, 1}));
  const std::vector<std::string> events = events_of(order.ranks[1], 2);
  EXPECT_THAT(events, testing::IsSupersetOf({"begins 1F1 with 1B0", "ends 1F1 with 1B0", "ran before 1B0"}));
  EXPECT_THAT(events, testing::Not(testing::Contains("begins 1B0")));
}

}  // namespace
}  // namespace rehearse
