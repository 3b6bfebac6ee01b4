// A file of published runs, one scenario with `measured` a line.
#include "validate/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const Json kRun =
    Json::parse(R"({"id": "mine", "family": "f", "scenario": {"model": "llama3-8b", "cluster": "dgx-h100",
  "gpus": 8, "plan": {"tp": 2, "clip_grad": 1, "global_batch": 16, "seq": 1024}}, "measured": {"step_time_s": 2.5},
  "stated": ["/model", "/cluster", "/gpus", "/plan/tp", "/plan/global_batch", "/plan/seq"],
  "why": {"/plan/clip_grad": "a script"}})");

void accept(const Json& /*scenario*/, const std::string& /*place*/) {}

std::vector<PublishedRun> read(const std::string& text, const CheckScenario& check = accept) {
  const Scratch folder;
  return read_runs(folder.write("runs.jsonl", text), check);
}

PublishedRun read(const Json& run) {
  return read(run.dump()).front();
}

// `run` with another value at a pointer; null takes the key away.
Json with(const std::string& pointer, const Json& value, Json run = kRun) {
  run[Json::json_pointer(pointer)] = value;
  if (value.is_null()) run.erase(pointer.substr(1));
  return run;
}

std::vector<std::string> complaints(const std::string& text, const CheckScenario& check = accept) {
  std::vector<std::string> all;
  try {
    read(text, check);
  } catch (const InputError& error) {
    for (const Violation& each : error.violations()) all.push_back(to_string(each));
  }
  return all;
}

TEST(Runs, AreReadWithWhatWasMeasured) {
  Json run = with("/measured/memory", {{"bytes", 5e9}, {"kind", "nvidia-smi"}});
  run["core"] = true;
  const PublishedRun read_back = read(run);
  EXPECT_EQ(read_back.measured_s, 2.5);
  EXPECT_EQ(read_back.memory_bytes, 5e9);
  EXPECT_EQ(read_back.counted, Counted::nvidia_smi);
  EXPECT_TRUE(read_back.core);
  EXPECT_THAT(read_back.candidates, SizeIs(1));
  EXPECT_EQ(read_back.candidates.front(), kRun["scenario"]);
}

TEST(Runs, HaveAScenarioOfTheStatedSwitchesAlone) {
  Json stated = kRun["scenario"];
  stated["plan"].erase("clip_grad");
  EXPECT_EQ(read(kRun).as_stated, stated);
}

TEST(Runs, AreTheSameUnderAnyNameAndFamily) {
  const PublishedRun first = read(kRun);
  for (const char* id : {"bloom-8b", "titan-8b-8gpu-fsdp", "mlperf-v3"}) {
    Json other = kRun;
    other["id"] = id;
    other["family"] = id;
    const PublishedRun again = read(other);
    EXPECT_EQ(again.candidates, first.candidates);
    EXPECT_EQ(again.as_stated, first.as_stated);
  }
}

TEST(Runs, TakeTheStepTimeFromTheTokensPerSecondWhereItIsAbsent) {
  EXPECT_EQ(read(with("/measured", {{"tokens_per_s_per_gpu", 1024.0}})).measured_s,
            2);  // 16 x 1024 over 8 GPUs
  EXPECT_FALSE(read(with("/measured", Json::object())).measured_s);
}

TEST(Runs, StandForEachCombinationOfWhatTheyLeaveOpen) {
  Json run = with("/missing", Json::array({"recompute", "batch.micro"}));
  EXPECT_THAT(read(run).candidates, SizeIs(0)) << "nobody can tell";
  run["open"] = {{"/plan/recompute", {"none", "full"}}, {"/plan/micro_batch", {1, 2, 4}}};
  const PublishedRun open = read(run);
  EXPECT_THAT(open.candidates, SizeIs(6));
  EXPECT_EQ(open.candidates[4]["plan"]["recompute"], "full");
  EXPECT_EQ(open.candidates[4]["plan"]["micro_batch"], 2);
  EXPECT_EQ(open.missing, "recompute, batch.micro");
  EXPECT_FALSE(open.as_stated);
}

TEST(Runs, RefuseUnknownWordsWithTheirLine) {
  const std::string good = kRun.dump() + "\n\n";
  for (const auto& [pointer, value] : std::vector<std::pair<std::string, Json>>{
           {"/familly", "f"},
           {"/measured/step_time", 1},
           {"/measured/memory", {{"bytes", 1e9}, {"kind", "maximal"}}},
           {"/measured/memory", {{"bytes", 1e9}, {"kind", "reserved"}, {"unit", "GB"}}},
           {"/measured/tflops_per_gpu", {{"value", 3}}},
           {"/measured/step_time_s", -1},
           {"/source", {{"titel", "x"}}},
           {"/known", "guessed"},
           {"/stated", "/plan"},
           {"/why", {{"/plan/clip_gard", "a script"}}},
           {"/missing", Json::array({7})},
           {"/measured", nullptr},
           {"/id", nullptr}}) {
    const std::vector<std::string> said = complaints(good + with(pointer, value).dump());
    ASSERT_THAT(said, SizeIs(1)) << pointer << value;
    EXPECT_THAT(said.front(), HasSubstr("runs.jsonl:3")) << pointer;
  }
  EXPECT_THAT(complaints(good + "{\"id\": "), SizeIs(1)) << "no JSON";
}

TEST(Runs, RefuseOpenSwitchesOfAnotherForm) {
  const Json open = with("/missing", Json::array({"batch.micro"}));
  for (const Json& values : {Json{{"/plan/micro_batch", Json::array()}}, Json{{"/plan/micro_batch", 1}},
                             Json{{"/cluster", {"a", "b"}}}, Json{{"/model/layers", {1, 2}}},
                             Json{{"/plan/x", std::vector<int>(300, 1)}}, Json{{"/plan~", {1}}}})
    EXPECT_THAT(complaints(with("/open", values, open).dump()), SizeIs(1)) << values;
  EXPECT_THAT(complaints(with("/open", {{"/plan/micro_batch", {1}}}).dump()), SizeIs(1))
      << "nothing is missing";
}

TEST(Runs, SayWhereAScenarioIsWrong) {
  const auto refuse = [](const Json&, const std::string& place) {
    throw InputError({place, "/plan/pt", "is not a known key", "", "tp"});
  };
  const std::vector<std::string> said = complaints(kRun.dump() + "\n" + kRun.dump(), refuse);
  ASSERT_THAT(said, SizeIs(2)) << "every line is looked at";
  EXPECT_THAT(said.back(), HasSubstr("runs.jsonl:2: /scenario/plan/pt"));
}

TEST(Runs, OfTheOlderFormAreTurnedIntoScenariosByAScript) {
  const std::vector<std::string> said = complaints(" \n[{\"id\": \"mine\", \"family\": \"f\"}]");
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_THAT(said.front(), HasSubstr("tools/convert-runs"));
  EXPECT_THAT(complaints(" \n"), SizeIs(1)) << "an empty file";
}

}  // namespace
}  // namespace rehearse
