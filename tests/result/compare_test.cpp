// Comparison of two runs: errors per quantity, gates, and reading a trace back.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "cases.h"
#include "draw/pipeline.h"
#include "draw/xml.h"
#include "result/chrome_trace.h"
#include "result/compare/compare.h"
#include "result/compare/gates.h"
#include "result/compare/join_traces.h"
#include "result/compare/read_trace.h"
#include "result/report_json.h"

namespace rehearse {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json report_of(const Case& made) {
  return Json::parse(write_report_json(made.report, "1"));
}

Json trace_of(const Case& made) {
  std::ostringstream out;
  write_chrome_trace(out, made.timeline, made.schedule, made.report, made.work);
  return Json::parse(out.str());
}

Case slower_backward() {
  return make_case(small_plan(2, 1, 4), Durations{1, 3, 0.1, 0, 0.1});
}
Case faster_backward() {
  return make_case(small_plan(2, 1, 4), Durations{1, 2, 0.1, 0, 0.1});
}

ReportComparison compared(const Case& a, const Case& b) {
  return compare_runs(compared_run("a", report_of(a), &a.timeline, &a.schedule),
                      compared_run("b", report_of(b), &b.timeline, &b.schedule));
}

QuantityPair pair_named(const ReportComparison& comparison, const std::string& name) {
  for (const QuantityPair& pair : comparison.pairs)
    if (pair.name == name) return pair;
  ADD_FAILURE() << "no quantity " << name;
  return {};
}

TEST(Compare, AReportDiffersFromItselfNowhere) {
  const Case made = make_case(small_plan(2, 2, 4, 2), Durations{1, 2, 0.1, 0.1, 0.1});
  const ReportComparison same = compared(made, made);
  EXPECT_THAT(same.otherwise, IsEmpty());
  ASSERT_GT(same.pairs.size(), 40u);
  for (const QuantityPair& pair : same.pairs) EXPECT_EQ(pair.error(), 0.0) << pair.name;
}

// By hand: pp 2, m 4, F 1, message 0.1. Rank 1's compute is 4 (F + B) and begins at 1.1.
TEST(Compare, ErrorsAreRelativeToTheSecond) {
  const Case a = slower_backward(), b = faster_backward();
  const ReportComparison comparison = compared(a, b);
  const QuantityPair backward = pair_named(comparison, "ops.B.mean_s");
  EXPECT_NEAR(backward.a.value(), 3, 1e-9);
  EXPECT_NEAR(backward.b.value(), 2, 1e-9);
  EXPECT_NEAR(backward.error().value(), 0.5, 1e-9);
  EXPECT_NEAR(pair_named(comparison, "step_time_s").error().value(),
              a.report.step_time_s / b.report.step_time_s - 1, 1e-12);
  EXPECT_EQ(pair_named(comparison, "ops.F.count").a, 8);
  EXPECT_NEAR(pair_named(comparison, "bubble_fraction.rank1").a.value(),
              bubble_fraction(a.timeline.ranks[1], a.schedule.ranks[1], a.report.step_time_s), 1e-12);
}

TEST(Compare, PartsOfTimeAndEveryMessageAreCompared) {
  const Case made = make_case(small_plan(2, 1, 4, 2), Durations{1, 2, 0.1, 0.1, 0.1}, true);
  const ReportComparison comparison = compared(made, made);
  double sum = 0;
  std::set<std::string> communication;
  for (const QuantityPair& pair : comparison.pairs) {
    if (pair.name.starts_with("time_s.")) sum += pair.a.value();
    if (pair.name.ends_with(".busy_s")) communication.insert(pair.name);
  }
  EXPECT_NEAR(sum, made.report.step_time_s, 1e-9);
  EXPECT_EQ(communication.size(), made.report.communication.size());
  EXPECT_THAT(communication, testing::Contains("communication.pp.send_receive.2.pipeline.busy_s"));
}

TEST(Compare, NamesWhatOfThePlanIsOtherwise) {
  const Case a = make_case(small_plan(2, 1, 4), Durations{});
  const Case b = make_case(small_plan(2, 2, 4), Durations{});
  std::vector<std::string> fields;
  for (const Otherwise& field : compared(a, b).otherwise) fields.push_back(field.field);
  EXPECT_THAT(fields, ElementsAre("plan.vpp", "plan.schedule"));
}

TEST(Compare, WhatOneSideLacksHasNoError) {
  const Case one = make_case(small_plan(1, 1, 4), Durations{}), two = faster_backward();
  const QuantityPair lacking = pair_named(compared(one, two), "memory.rank1.peak_bytes");
  EXPECT_FALSE(lacking.a);
  EXPECT_TRUE(lacking.b);
  EXPECT_FALSE(lacking.error());
  EXPECT_EQ((QuantityPair{"x", Measure::count, 0, 0}.error()), 0.0);
  EXPECT_FALSE((QuantityPair{"x", Measure::count, 1, 0}.error()));
}

// On pipeline rank 1, global ranks 2 and 3 have 5 and 7 bytes allocated.
TEST(Compare, PredictedMemoryMeetsWhatWasAllocated) {
  const Case made = make_case(small_plan(2, 1, 4, 2), Durations{});
  Json executed = report_of(made);
  executed["source"] = "execute";
  executed["execution"] = {{"peak_activation_bytes_by_rank", {1, 2, 5, 7}}};
  const ReportComparison comparison =
      compare_runs(compared_run("a", report_of(made)), compared_run("b", executed));
  const QuantityPair rank1 = pair_named(comparison, "memory.rank1.allocated_bytes");
  EXPECT_EQ(rank1.b, 7);
  const RankMemory& memory = made.report.memory[1];
  EXPECT_NEAR(rank1.a.value(), memory.activations_bytes + memory.logits_bytes, 1);
}

TEST(Compare, RefusesAReportThatLacksAFigure) {
  Json broken = report_of(faster_backward());
  broken["bubble_fraction"].erase("worst");
  try {
    compared_run("mine.json", broken);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("mine.json"), HasSubstr("worst")));
  }
}

TEST(Compare, TableAndJsonSayTheSame) {
  const ReportComparison comparison = compared(slower_backward(), faster_backward());
  const std::string table = comparison_table(comparison);
  EXPECT_THAT(table, HasSubstr("+50.0 %"));
  EXPECT_THAT(table, HasSubstr("% of step"));
  const Json json = comparison_json(comparison);
  EXPECT_EQ(json["schema"], "rehearse.comparison/1");
  ASSERT_EQ(json["quantities"].size(), comparison.pairs.size());
  EXPECT_EQ(json["quantities"][0]["name"], "step_time_s");
  EXPECT_NEAR(json["quantities"][0]["error"].get<double>(), comparison.pairs[0].error().value(), 1e-15);
}

TEST(Gates, ANumberAloneIsOfTheStepTime) {
  const std::vector<Gate> gates = parse_gates("5%");
  ASSERT_EQ(gates.size(), 1u);
  EXPECT_EQ(gates[0].name, "step_time_s");
  EXPECT_DOUBLE_EQ(gates[0].most, 0.05);
}

TEST(Gates, FailExactlyAboveTheirMost) {
  const Case a = slower_backward(), b = faster_backward();
  const ReportComparison comparison = compared(a, b);
  const double percent = 100 * (a.report.step_time_s / b.report.step_time_s - 1);
  EXPECT_THAT(beyond_gates(comparison, {{"step_time_s", percent / 100 + 1e-9}}), IsEmpty());
  EXPECT_THAT(beyond_gates(comparison, {{"step_time_s", percent / 100 - 1e-9}}),
              ElementsAre(HasSubstr("step_time_s")));
}

TEST(Gates, CoverAllThatBeginsWithTheirName) {
  const ReportComparison comparison = compared(slower_backward(), faster_backward());
  EXPECT_THAT(beyond_gates(comparison, parse_gates("ops.B=1%")),
              ElementsAre(HasSubstr("ops.B.mean_s differs by +50")));
  EXPECT_EQ(beyond_gates(comparison, parse_gates("bubble=0%")).size(), 4u);  // mean, worst, two ranks
}

TEST(Gates, RefuseWhatIsNoPercentageOrNoQuantity) {
  for (const char* text : {"", "5", "%", "x=5", "=5%", "-1%", "nan%", "5%,", "step_time_s=5%%"})
    EXPECT_THROW(parse_gates(text), InputError) << text;
  const ReportComparison comparison = compared(slower_backward(), faster_backward());
  try {
    beyond_gates(comparison, parse_gates("bubbel=1%"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.violations().front().nearest, "bubble");
  }
}

RC_GTEST_PROP(ReadTrace, FindsEveryOpAndItsTimes, ()) {
  const int pp = *rc::gen::inRange(1, 5);
  const int vpp = pp > 1 ? *rc::gen::inRange(1, 3) : 1;
  const Plan plan = small_plan(pp, vpp, pp * *rc::gen::inRange(1, 4), *rc::gen::inRange(1, 3));
  TaskOptions options;
  options.fold = *rc::gen::element(Fold::replicas, Fold::none);
  const auto seconds = [] { return 1e-9 * *rc::gen::inRange(0, 300000); };
  const Case made = make_case(plan, Durations{seconds(), seconds(), seconds(), seconds(), seconds()},
                              *rc::gen::arbitrary<bool>(), small_model(pp * vpp), options);
  const RecordedRun run = read_trace(trace_of(made), "trace.json");
  RC_ASSERT(run.schedule.stages == made.schedule.stages);
  RC_ASSERT(run.schedule.microbatches == made.schedule.microbatches);
  RC_ASSERT(run.timeline.ranks.size() == made.timeline.ranks.size());
  for (std::size_t i = 0; i < run.timeline.ranks.size(); ++i) {
    const TimelineRank &read = run.timeline.ranks[i], &written = made.timeline.ranks[i];
    RC_ASSERT(read.instance.rank == written.instance.rank);
    const auto rank = static_cast<std::size_t>(written.instance.pipeline_rank);
    const RankOps &ops = run.schedule.ranks[rank], &original = made.schedule.ranks[rank];
    RC_ASSERT(ops.size() == original.size());
    for (std::size_t op = 0; op < ops.size(); ++op) {
      RC_ASSERT(to_string(ops[op]) == to_string(original[op]));
      RC_ASSERT(ops[op].parts == original[op].parts);
      RC_ASSERT(ops[op].stream == original[op].stream);
      RC_ASSERT(std::abs(read.spans[op].begin - written.spans[op].begin) < 2e-9);
      RC_ASSERT(std::abs(read.spans[op].end - written.spans[op].end) < 2e-9);
    }
  }
}

TEST(ReadTrace, HoldsTheReport) {
  const Case made = faster_backward();
  const RecordedRun run = read_trace(trace_of(made), "trace.json");
  Json expected = report_of(made);
  expected.erase("version");
  EXPECT_EQ(run.report, expected);
  const Report head = read_report_head(JsonReader(run.report, "trace.json"));
  EXPECT_EQ(head.plan.pp, 2);
  EXPECT_EQ(head.plan.microbatches(), 4);
  EXPECT_EQ(head.model.name, "small");
  EXPECT_DOUBLE_EQ(head.bubble_worst, made.report.bubble_worst);
}

TEST(ReadTrace, RefusesTracesOfOthersAndBrokenOnes) {
  const auto refusal = [](const Json& trace) -> std::string {
    try {
      read_trace(trace, "other.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refusal({{"traceEvents", Json::array()}}), HasSubstr("--trace writes"));
  const Json trace = trace_of(faster_backward());
  Json renamed = trace, unnamed = trace, late = trace;
  for (Json& event : renamed["traceEvents"])
    if (event["ph"] == "X") event["name"] = "PP:0Q1";
  EXPECT_THAT(refusal(renamed), HasSubstr("0Q1"));
  unnamed["traceEvents"].erase(unnamed["traceEvents"].begin());
  EXPECT_THAT(refusal(unnamed), HasSubstr("pid"));
  for (Json& event : late["traceEvents"])
    if (event["ph"] == "X") event["dur"] = -1;
  EXPECT_THAT(refusal(late), HasSubstr("dur"));
}

TEST(JoinTraces, KeepsEveryEventApartAndSetsRanksSideBySide) {
  const Json a = trace_of(slower_backward()), b = trace_of(faster_backward());
  const Json joined = join_traces(a, "predicted", b, "executed");
  EXPECT_EQ(joined["traceEvents"].size(), a["traceEvents"].size() + b["traceEvents"].size());
  std::set<std::string> names;
  std::set<std::pair<std::string, std::int64_t>> flows;
  for (const Json& event : joined["traceEvents"]) {
    if (event["name"] == "process_name") names.insert(event["args"]["name"]);
    if (!event.contains("id")) continue;
    EXPECT_TRUE(flows.emplace(event["ph"], event["id"]).second) << event.dump();
  }
  EXPECT_THAT(names, ElementsAre("executed rank 0 (pp 0)", "executed rank 1 (pp 1)",
                                 "predicted rank 0 (pp 0)", "predicted rank 1 (pp 1)"));
}

std::size_t times_found(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// A forward of 1 s is equally wide in all panels, although the steps differ in length. Axis and legend stand
// once.
TEST(DrawPipelines, ShareOneScaleOfTime) {
  const Case a = slower_backward(), b = faster_backward();
  const std::string all = draw_pipelines({{"predicted", a.timeline, a.schedule, a.report},
                                          {"executed", b.timeline, b.schedule, b.report},
                                          {"again", b.timeline, b.schedule, b.report}});
  for (const char* name : {"predicted", "executed", "again"})
    EXPECT_EQ(times_found(all, fmt::format("\"bold\">{}: ", name)), 1u) << name;
  const double left = 58 * 1.35;
  const std::string box = fmt::format("M{:.1f} 0h{:.2f}v", left, (1200 - left - 22) / a.report.step_time_s);
  EXPECT_EQ(times_found(all, box), 3u) << box;
  EXPECT_EQ(times_found(all, "time since the start of the iteration"), 1u);
  EXPECT_EQ(times_found(all, ">idle</text>"), 1u);
  EXPECT_LT(all.find("\"bold\">again: "), all.find("time since the start of the iteration"));
}

}  // namespace
}  // namespace rehearse
