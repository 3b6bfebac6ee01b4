#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "cases.h"
#include "result/chrome_trace.h"

namespace rehearse {
namespace {

using namespace test;
using Json = nlohmann::json;

Json trace_of(const Case& made) {
  std::ostringstream out;
  write_chrome_trace(out, made.timeline, made.schedule, made.report, made.work);
  return Json::parse(out.str());
}

std::int64_t ns(const Json& micros) {
  return std::llround(micros.get<double>() * 1000);
}

Json only(const Json& trace, const std::string& phase, const std::string& name = "") {
  Json found = Json::array();
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == phase && (name.empty() || event["name"] == name)) found.push_back(event);
  return found;
}

RC_GTEST_PROP(ChromeTrace, SlicesOfATrackAreSortedAndDoNotOverlap, ()) {
  const int pp = *rc::gen::inRange(1, 5);
  const int vpp = pp > 1 ? *rc::gen::inRange(1, 3) : 1;
  Plan plan = small_plan(pp, vpp, pp * *rc::gen::inRange(1, 4), *rc::gen::inRange(1, 3));
  plan.overlap_p2p = *rc::gen::arbitrary<bool>();
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  const auto seconds = [] { return 1e-9 / 3 * *rc::gen::inRange(0, 30000); };
  TaskOptions options;
  options.fold = *rc::gen::element(Fold::replicas, Fold::none);
  const Case made = make_case(plan, Durations{seconds(), seconds(), seconds(), seconds(), seconds()},
                              *rc::gen::arbitrary<bool>(), small_model(pp * vpp), options);
  std::map<std::pair<int, int>, std::int64_t> covered;
  for (const Json& slice : only(trace_of(made), "X")) {
    std::int64_t& end = covered[{slice["pid"].get<int>(), slice["tid"].get<int>()}];
    RC_ASSERT(ns(slice["ts"]) >= end);
    RC_ASSERT(ns(slice["dur"]) >= 0);
    end = ns(slice["ts"]) + ns(slice["dur"]);
  }
  RC_ASSERT(!covered.empty());
}

TEST(ChromeTrace, EachFlowHasOneBeginAndOneEndNoEarlier) {
  TaskOptions all;
  all.fold = Fold::none;
  const Case made =
      make_case(small_plan(3, 2, 6, 2), Durations{1e-3, 2e-3, 1e-4, 0, 0}, false, small_model(6), all);
  const Json trace = trace_of(made);
  std::map<std::int64_t, Json> begins;
  for (const Json& event : only(trace, "s")) {
    EXPECT_TRUE(begins.emplace(event["id"].get<std::int64_t>(), event).second);
  }
  const Json ends = only(trace, "f");
  EXPECT_EQ(begins.size(), 2u * 2 * 5 * 6);
  EXPECT_EQ(ends.size(), begins.size());
  for (const Json& event : ends) {
    const auto begin = begins.find(event["id"].get<std::int64_t>());
    ASSERT_NE(begin, begins.end());
    EXPECT_EQ(event["bp"], "e");
    EXPECT_LE(begin->second["ts"], event["ts"]);
    EXPECT_NE(begin->second["pid"], event["pid"]);
    EXPECT_EQ(begin->second["pid"].get<int>() % 2, event["pid"].get<int>() % 2);  // same replica
    begins.erase(begin);
  }
}

TEST(ChromeTrace, NamesOpsAsTheFieldDoes) {
  const Case made = make_case(small_plan(2, 1, 2, 2), Durations{1, 2, 0.5, 0.5, 0.5}, true);
  const Json trace = trace_of(made);
  std::set<std::string> names;
  for (const Json& slice : only(trace, "X")) names.insert(slice["name"]);
  for (const char* name :
       {"PP:0F0", "PP:1B1.1", "ncclDevKernel_SendRecv 0SEND_F0", "ncclDevKernel_SendRecv 1RECV_F1",
        "ncclDevKernel_AllReduce 0REDUCE_GRAD.1", "ncclDevKernel_AllReduce 1REDUCE_TIED", "optimizer 0STEP"})
    EXPECT_THAT(names, testing::Contains(name));
  const Json slice = only(trace, "X", "PP:1F1").at(0);
  EXPECT_EQ(slice["args"]["stage"], 1);
  EXPECT_EQ(slice["args"]["microbatch"], 1);
}

TEST(ChromeTrace, OwnersAllReduceAndBroadcastWholeParameters) {
  Plan plan = small_plan(1, 1, 2, 4);
  plan.zero = 1;
  plan.framework = Framework::internevo;
  const Case made = make_case(plan, Durations{1, 2, 0.5, 0.5, 0.5});
  const Json trace = trace_of(made);
  EXPECT_EQ(only(trace, "X", "ncclDevKernel_AllReduce 0REDUCE_GRAD.0").size(), 1u);
  const Json broadcasts = only(trace, "X", "ncclDevKernel_Broadcast 0UNSHARD");
  ASSERT_EQ(broadcasts.size(), 1u);
  const Json& args = broadcasts[0]["args"];
  EXPECT_EQ(args["Collective name"], "broadcast");
  EXPECT_EQ(args["Group size"], 4);
  EXPECT_EQ(args["In msg nelems"], made.work.parameters(0));
  EXPECT_EQ(args["Out msg nelems"], made.work.parameters(0));
}

TEST(ChromeTrace, SeveralGroupsOfOwnersScatterAndBroadcastInEach) {
  Plan plan = small_plan(1, 1, 2, 4);
  plan.zero = 1;
  plan.zero_shard = 2;
  plan.framework = Framework::internevo;
  const Json trace = trace_of(make_case(plan, Durations{1, 2, 0.5, 0.5, 0.5}));
  EXPECT_EQ(only(trace, "X", "ncclDevKernel_ReduceScatter 0REDUCE_GRAD.0").size(), 1u);
  EXPECT_EQ(only(trace, "X", "ncclDevKernel_Broadcast 0UNSHARD").at(0)["args"]["Group size"], 2);
}

// The two groups have sizes of their own.
TEST(ChromeTrace, ExpertsWithTheirOwnReplicasAreAFurtherMessage) {
  Plan plan = small_plan(1, 1, 2, 4);
  plan.ep = 2;
  Model model = small_model();
  model.experts = Experts{8, 2, 32, 0, 0, 1, true};
  const Case made = make_case(plan, Durations{1, 2, 0.5, 0.5, 0.5}, false, model);
  const Json args = only(trace_of(made), "X", "ncclDevKernel_AllReduce 0REDUCE_GRAD.0").at(0)["args"];
  const double experts = made.work.expert_parameters(0);
  EXPECT_EQ(args["Group size"], 4);
  EXPECT_EQ(args["In msg nelems"], (made.work.parameters(0) - experts) / 2) << "in two parts";
  ASSERT_EQ(args["Further messages"].size(), 1u);
  const Json& further = args["Further messages"][0];
  EXPECT_EQ(further["Process Group Name"], "expert dp");
  EXPECT_EQ(further["Group size"], 2);
  EXPECT_EQ(further["In msg nelems"], experts / 2);
}

// Rank 0 of the hand-made timeline (report_test) is idle from 2 to 5; 0RECV_B0 moves from 4.5.
TEST(ChromeTrace, WaitIsTheIdleOfComputeBeforeTheFirstByte) {
  Plan plan = small_plan(2, 1, 2);
  plan.overlap_p2p = true;
  const Json trace = trace_of(make_case(plan, Durations{1, 2, 0.5, 0, 0}));
  const Json waits = only(trace, "X", "wait 0RECV_B0");
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]["ts"], 2e6);
  EXPECT_EQ(waits[0]["dur"], 2.5e6);
  const Json moves = only(trace, "X", "ncclDevKernel_SendRecv 0RECV_B0");
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0]["ts"], 4.5e6);
  EXPECT_EQ(moves[0]["dur"], 0.5e6);
  EXPECT_NE(moves[0]["tid"], waits[0]["tid"]);
}

TEST(ChromeTrace, NamesEveryTrackAndProcess) {
  const Case made = make_case(small_plan(2, 1, 2), Durations{1, 2, 0.5, 0, 0});
  const Json trace = trace_of(made);
  std::set<std::pair<int, int>> named;
  for (const Json& event : only(trace, "M", "thread_name"))
    named.emplace(event["pid"].get<int>(), event["tid"].get<int>());
  for (const Json& slice : only(trace, "X"))
    EXPECT_EQ(named.count({slice["pid"].get<int>(), slice["tid"].get<int>()}), 1u);
  const Json processes = only(trace, "M", "process_name");
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[1]["args"]["name"], "rank 1 (pp 1)");
}

TEST(ChromeTrace, CountsActivationBytes) {
  const Case made = make_case(small_plan(2, 1, 4), Durations{});
  double peak = 0;
  for (const Json& event : only(trace_of(made), "C", "activation memory"))
    if (event["pid"] == 0) peak = std::max(peak, event["args"]["bytes"].get<double>());
  const RankMemory& memory = made.report.memory[0];
  EXPECT_NEAR(peak, memory.activations_bytes + memory.logits_bytes, 1);
  EXPECT_GT(peak, 2 * made.work.saved_bytes(0));
}

TEST(ChromeTrace, EscapesNames) {
  Case made = make_case(small_plan(1, 1, 1), Durations{});
  made.report.model.name = "a\"b\\c\n\xff";
  made.report.facts.gpu_name = "\"";
  EXPECT_EQ(trace_of(made)["traceName"], "a\"b\\c\n\uFFFD on test cluster");
}

TEST(ChromeTrace, OfNothingIsStillATrace) {
  Case made = make_case(small_plan(1, 1, 1), Durations{});
  made.timeline = {};
  EXPECT_TRUE(trace_of(made)["traceEvents"].empty());
}

TEST(ChromeTrace, RefusesATimelineOfAnotherSchedule) {
  Case made = make_case(small_plan(1, 1, 1), Durations{});
  made.timeline.ranks[0].spans.pop_back();
  EXPECT_THROW(trace_of(made), InputError);
}

}  // namespace
}  // namespace rehearse
