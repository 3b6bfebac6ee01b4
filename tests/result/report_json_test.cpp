#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases.h"
#include "result/report_json.h"

namespace rehearse {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::IsSupersetOf;
using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& entry : object.items()) names.push_back(entry.key());
  return names;
}

Json example() {
  const Case made = make_case(small_plan(2, 1, 4, 2), Durations{1, 2, 0.1, 0.1, 0.1});
  return Json::parse(write_report_json(made.report, "1.2.3"));
}

TEST(ReportJson, HasExactlyTheKeysOfItsSchema) {
  EXPECT_THAT(keys(example()),
              ElementsAre("schema", "source", "engine", "version", "profile", "collectives", "step_time_s",
                          "step_time_band_s", "tokens_per_s", "tokens_per_s_per_gpu", "samples_per_s",
                          "model_tflops_per_gpu", "hardware_tflops_per_gpu", "mfu", "hfu", "attention_flops",
                          "peak_tflops_per_gpu", "bubble_fraction", "bubble_fraction_ideal", "time_s",
                          "mean_time_s", "ranks", "critical_rank", "communication", "memory", "plan", "model",
                          "cluster", "omitted_effects", "warnings"));
}

TEST(ReportJson, NestedObjectsHaveTheirKeys) {
  const Json json = example();
  EXPECT_THAT(keys(json["bubble_fraction"]), ElementsAre("mean", "worst", "worst_rank"));
  EXPECT_THAT(keys(json["time_s"]),
              ElementsAre("compute", "recompute", "optimizer", "bubble", "exposed_tp", "exposed_pp",
                          "exposed_dp", "exposed_cp", "exposed_ep", "exposed_offload"));
  EXPECT_THAT(keys(json["communication"][0]),
              ElementsAre("kind", "op", "group", "group_size", "calls", "bytes_per_rank", "busy_s",
                          "exposed_s", "gpu_link_bytes", "nic_bytes", "host_bytes"));
  EXPECT_THAT(keys(json["memory"]),
              ElementsAre("capacity_bytes", "peak_bytes", "peak_rank", "needed_bytes", "fullest_rank", "fits",
                          "verdict", "free_bytes", "headroom_wanted_bytes", "reserved_bytes",
                          "needs_expandable_segments", "way_to_fit", "outside_allocator", "ranks"));
  EXPECT_THAT(keys(json["memory"]["ranks"][0]),
              IsSupersetOf({"rank", "stage", "parameters_bytes", "gradients_bytes", "optimizer_bytes",
                            "activations_bytes", "logits_bytes", "buffers_bytes", "peak_bytes",
                            "master_weights_bytes", "working_bytes", "workspace_bytes", "peak_time_s",
                            "alive_at_peak", "context_bytes", "nccl_bytes", "needed_bytes"}));
  EXPECT_THAT(keys(json["profile"]), ElementsAre("name", "how", "gpu", "carried_over", "extrapolated_share"));
  EXPECT_THAT(keys(json["plan"]),
              IsSupersetOf({"tp", "pp", "vpp", "dp", "cp", "micro_batch", "global_batch", "schedule"}));
  EXPECT_THAT(keys(json["model"]), IsSupersetOf({"name", "parameters"}));
}

TEST(ReportJson, SaysWhatItIs) {
  const Json json = example();
  EXPECT_EQ(json["schema"], "rehearse.report/1");
  EXPECT_EQ(json["version"], "1.2.3");
  EXPECT_EQ(json["source"], "simulate");
  EXPECT_EQ(json["attention_flops"], "full");
  EXPECT_EQ(json["memory"]["fits"], true);
  EXPECT_EQ(json["warnings"], Json::array());
  EXPECT_EQ(json["plan"]["schedule"], "1f1b");
}

TEST(ReportJson, SharesSumToTheStepAfterPrinting) {
  const Json json = example();
  double sum = 0;
  for (const auto& share : json["time_s"]) sum += share.get<double>();
  EXPECT_NEAR(sum, json["step_time_s"].get<double>(), 1e-12 * sum);
}

TEST(ReportJson, EachRankHasItsSplitOfTheStep) {
  const Json json = example();
  ASSERT_EQ(json["ranks"].size(), 2u);
  for (const Json& rank : json["ranks"]) {
    EXPECT_THAT(keys(rank), ElementsAre("rank", "pipeline_rank", "time_s"));
    EXPECT_EQ(keys(rank["time_s"]), keys(json["time_s"]));
    double sum = 0;
    for (const auto& share : rank["time_s"]) sum += share.get<double>();
    EXPECT_NEAR(sum, json["step_time_s"].get<double>(), 1e-12 * sum);
  }
  EXPECT_EQ(json["ranks"][1]["rank"], 2);  // after two replicas of the first
  EXPECT_EQ(keys(json["mean_time_s"]), keys(json["time_s"]));
}

TEST(ReportJson, PeakRankIsTheHeaviest) {
  const Json json = example();
  const Json& memory = json["memory"];
  double peak = 0;
  for (const auto& rank : memory["ranks"]) peak = std::max(peak, rank["peak_bytes"].get<double>());
  EXPECT_EQ(memory["peak_bytes"], peak);
  EXPECT_EQ(memory["ranks"][memory["peak_rank"].get<std::size_t>()]["peak_bytes"], peak);
}

TEST(ReportJson, WhatLiesOutsideTheAllocatorIsNoPartOfThePeakButOfWhatIsNeeded) {
  Case made = make_case(small_plan(2, 1, 4), Durations{});
  const double peak = heaviest_rank(made.report).peak_bytes;
  made.report.facts.outside_allocator.assign(2, {5, {{"world", 1}, {"dp", 2}}});
  const Json memory = report_json(made.report, "")["memory"];
  EXPECT_EQ(memory["peak_bytes"], peak);
  EXPECT_EQ(memory["needed_bytes"], peak + 8);
  EXPECT_EQ(memory["ranks"][1]["needed_bytes"], memory["ranks"][1]["peak_bytes"].get<double>() + 8);
  EXPECT_EQ(memory["outside_allocator"]["context_bytes"], 5);
  EXPECT_EQ(memory["outside_allocator"]["nccl_bytes"], 3);
  EXPECT_EQ(memory["outside_allocator"]["communicators"][1]["communicator"], "dp");
}

// The peak's rank need not be the fullest.
TEST(ReportJson, TheFullestRankIsTheOneThatDecides) {
  Case made = make_case(small_plan(2, 1, 4), Durations{});
  const int heaviest = heaviest_rank(made.report).rank;
  const auto other = static_cast<std::size_t>(1 - heaviest);
  made.report.facts.outside_allocator.assign(2, {});
  made.report.facts.outside_allocator[other].context_bytes = 1e12;
  const Json memory = report_json(made.report, "")["memory"];
  EXPECT_EQ(memory["peak_rank"], heaviest);
  EXPECT_EQ(memory["fullest_rank"], other);
  EXPECT_EQ(memory["needed_bytes"], memory["ranks"][other]["peak_bytes"].get<double>() + 1e12);
  EXPECT_EQ(memory["fits"], false);
}

TEST(ReportJson, WhatDoesNotFitSaysSo) {
  Case made = make_case(small_plan(2, 1, 4), Durations{});
  made.report.facts.gpu_memory_bytes = 1000;
  EXPECT_EQ(report_json(made.report, "")["memory"]["fits"], false);
  EXPECT_EQ(report_json(made.report, "")["memory"]["verdict"], "does not fit");
}

TEST(ReportJson, SurvivesNamesThatAreNoUtf8AndEmptyReports) {
  Report report;
  report.model.name = "caf\xe9 \"quoted\"";
  const Json json = Json::parse(write_report_json(report, ""));
  EXPECT_EQ(json["memory"]["ranks"], Json::array());
  EXPECT_EQ(json["model"]["name"], "caf\uFFFD \"quoted\"");
}

TEST(ReportJson, SameReportGivesSameBytes) {
  const Case made = make_case(small_plan(2, 2, 4), Durations{});
  EXPECT_EQ(write_report_json(made.report, "1"), write_report_json(made.report, "1"));
}

}  // namespace
}  // namespace rehearse
