// Comparing from the command line: files in, a table or JSON and an exit code out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string report(const std::string& name, const std::string& flags) {
  const Outcome run =
      run_program("simulate scenarios/gpt-10m-2-cores.json --engine reference --json " + flags);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return temporary_file(name, run.out);
}

std::string trace(const std::string& name, const std::string& flags) {
  const std::string path = temporary_file(name, "");
  const Outcome run =
      run_program("simulate scenarios/gpt-10m-2-cores.json --engine reference --trace " + path + " " + flags);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return path;
}

TEST(Compare, SaysHowFarTwoPlansAreApartAndGates) {
  const std::string a = report("a.json", ""), b = report("b.json", "--gbs 32");
  const Outcome table = run_program("compare " + a + " " + b);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("plan.global_batch: A 16, B 32"), HasSubstr("step_time_s")));
  EXPECT_EQ(run_program("compare " + a + " " + b + " --fail-above 60%").exit_code, 0);
  const Outcome failed = run_program("compare " + a + " " + b + " --fail-above step_time=5% --json");
  EXPECT_EQ(failed.exit_code, 5);
  EXPECT_THAT(failed.err, HasSubstr("step_time_s differs by -4"));
  EXPECT_EQ(Json::parse(failed.out)["failed"].size(), 1u);
}

TEST(Compare, DrawsAndJoinsTwoTraces) {
  const std::string a = trace("a.trace", ""), b = trace("b.trace", "--schedule gpipe");
  const std::string svg = temporary_file("both.svg", ""), both = temporary_file("both.json", "");
  const Outcome run =
      run_program("compare " + a + " " + b + " --svg " + svg + " --trace " + both + " --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(std::filesystem::file_size(svg), 5000u);
  EXPECT_GT(std::filesystem::file_size(both), std::filesystem::file_size(a));
  const Json json = Json::parse(run.out);
  EXPECT_EQ(json["otherwise"][0]["field"], "plan.schedule");
  EXPECT_THAT(run_program("compare " + a + " " + b).out, HasSubstr("ops.F.mean_s"));
}

TEST(Compare, RefusesWhatIsNeitherReportNorTrace) {
  const std::string a = report("a.json", "");
  const Outcome scenario = run_program("compare scenarios/gpt-10m-2-cores.json " + a);
  EXPECT_EQ(scenario.exit_code, 2);
  EXPECT_THAT(scenario.err, HasSubstr("neither a report"));
  EXPECT_EQ(run_program("compare " + a + " %/nowhere.json").exit_code, 2);
  const std::string list = temporary_file("list.json", "[1]");
  EXPECT_EQ(run_program("compare " + list + " " + a).exit_code, 2);
  const std::string foreign = temporary_file("foreign.json", R"({"traceEvents": []})");
  EXPECT_THAT(run_program("compare " + foreign + " " + a).err, HasSubstr("only traces that --trace writes"));
  const Outcome picture = run_program("compare " + a + " " + a + " --svg x.svg");
  EXPECT_EQ(picture.exit_code, 2);
  EXPECT_THAT(picture.err, HasSubstr("is a report"));
  EXPECT_EQ(run_program("compare " + a).exit_code, 2);
  EXPECT_EQ(run_program("compare " + a + " " + a + " --fail-above 5").exit_code, 2);
}

TEST(Compare, RefusesAReportWhoseFiguresCannotBe) {
  const std::string a = report("a.json", "");
  const Json good =
      Json::parse(run_program("simulate scenarios/gpt-10m-2-cores.json --engine reference --json").out);
  for (const auto& [pointer, value] : {std::pair<const char*, Json>{"/step_time_s", 0},
                                       {"/step_time_s", -1},
                                       {"/step_time_s", 1e300},
                                       {"/mfu", -0.5},
                                       {"/tokens_per_s", -3},
                                       {"/memory/peak_bytes", -1},
                                       {"/communication/0/busy_s", -2},
                                       {"/time_s/compute", 1e308}}) {
    Json bad = good;
    const Json::json_pointer place(pointer);
    if (!bad.contains(place)) continue;
    bad[place] = value;
    const Outcome refused = run_program("compare " + a + " " + temporary_file("bad.json", bad.dump()));
    EXPECT_EQ(refused.exit_code, 2) << pointer << value;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(pointer), HasSubstr("must be a number"))) << refused.err;
  }
}

TEST(CompareLog, MeetsTheMedianOfARealRunsLog) {
  const Outcome simulated =
      run_program("simulate scenarios/llama3-70b-512-h100.json --engine reference --json");
  const std::string report_file = temporary_file("predicted.json", simulated.out);
  const double predicted = Json::parse(simulated.out)["step_time_s"];
  const Outcome run =
      run_program("compare " + report_file + " --log tests/frameworks/data/megatron.log --warmup 1 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = Json::parse(run.out);
  EXPECT_EQ(json["b"]["engine"], "Megatron-LM");
  EXPECT_EQ(json["quantities"][0]["name"], "step_time_s");
  EXPECT_NEAR(json["quantities"][0]["error"].get<double>(), predicted / 12.0 - 1, 1e-9);
  EXPECT_EQ(json["quantities"].size(), 6u) << "what a log does not say is left out";
  const Outcome titan = run_program("compare " + report_file + " --log tests/frameworks/data/torchtitan.log");
  EXPECT_THAT(titan.err, HasSubstr("reserved"));
  EXPECT_EQ(
      run_program("compare " + report_file + " --log tests/frameworks/data/megatron.log --fail-above 0.001%")
          .exit_code,
      5);
  EXPECT_EQ(run_program("compare " + report_file + " --log README.md").exit_code, 2);
  EXPECT_EQ(run_program("compare " + report_file + " " + report_file + " --log README.md").exit_code, 2);
}

// Rates follow from the log's own batch; a step of other work is held by no gate.
TEST(CompareLog, OfAnotherGlobalBatchComparesRatesAlone) {
  const std::string report_file = temporary_file(
      "batch_128.json",
      run_program(
          "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 128 --engine reference --json")
          .out);
  const std::string compare =
      "compare " + report_file + " --log tests/frameworks/data/global_batch_1024.log --json";
  const Outcome run = run_program(compare + " --fail-above 1%");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("global batch 1024"));
  const Json json = Json::parse(run.out);
  std::map<std::string, Json> quantities;
  for (const Json& quantity : json["quantities"]) quantities[quantity["name"]] = quantity;
  EXPECT_TRUE(quantities.at("step_time_s")["error"].is_null());
  const double seconds = quantities.at("step_time_s")["b"];
  EXPECT_NEAR(seconds, (102.4772 + 100.9730) / 2, 1e-6);
  EXPECT_NEAR(quantities.at("samples_per_s")["b"].get<double>(), 1024 / seconds, 0.01);
  EXPECT_TRUE(quantities.at("samples_per_s")["error"].is_number());
  const Json batch = {{"field", "plan.global_batch"}, {"a", 128}, {"b", 1024}};
  EXPECT_EQ(json["otherwise"], Json::array({batch}));
  EXPECT_EQ(run_program(compare + " --fail-above tokens_per_s_per_gpu=1%").exit_code, 5);
}

TEST(CompareLog, ReadsTheUtilisationOfMegatronBridge) {
  const std::string report_file = temporary_file(
      "bridge.json",
      run_program(
          "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 128 --engine reference --json")
          .out);
  const Outcome run =
      run_program("compare " + report_file + " --log tests/frameworks/data/nemo_bridge_util.log --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json quantities = Json::parse(run.out)["quantities"];
  const auto tflops = std::ranges::find_if(
      quantities, [](const Json& quantity) { return quantity["name"] == "model_tflops_per_gpu"; });
  ASSERT_NE(tflops, quantities.end());
  EXPECT_DOUBLE_EQ((*tflops)["b"].get<double>(), 745.2);
}

// A scenario whose steps take milliseconds.
std::string tiny() {
  const std::string model = temporary_file("tiny_gpt.json", R"({
    "model_type": "gpt2", "activation_function": "gelu_new", "n_layer": 4, "n_embd": 64, "n_head": 4,
    "n_positions": 64, "vocab_size": 128})");
  return "scenarios/gpt-10m-2-cores.json --seq 16 --mbs 1 --model " + model + " ";
}

TEST(ExecutePredict, TimesWhatIsMissingThenComparesPredictedWithExecuted) {
  const std::string profile = temporary_file("timed.json", "");
  std::filesystem::remove(profile);
  const std::string predict = "execute " + tiny() + "--gbs 4 --iterations 2 --warmup 1 --predict ";
  const std::string keep = "--calibrate-seconds 0.001 --profile-out " + profile;
  const Outcome first = run_program(predict + "--fresh --json " + keep);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json json = Json::parse(first.out);
  EXPECT_EQ(json["schema"], "rehearse.comparison/1");
  EXPECT_EQ(json["a"]["source"], "simulate");
  EXPECT_EQ(json["b"]["source"], "execute");
  for (const Json& pair : json["quantities"]) {
    if (pair["name"] != "step_time_s" && pair["name"] != "memory.rank0.allocated_bytes") continue;
    EXPECT_FALSE(pair["error"].is_null()) << pair.dump();
  }
  EXPECT_THAT(first.err, HasSubstr("timed, 0 already known"));
  const Outcome second = run_program(predict + keep + " --fail-above ops.F.count=0%");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("0 kernels and messages timed"));
  EXPECT_EQ(run_program("execute " + tiny() + "--fail-above 5%").exit_code, 2);
}

TEST(SweepExecute, PutsWhatWasMeasuredBesideWhatIsPredicted) {
  const std::string store = temporary_file("executed.db", "");
  std::filesystem::remove(store);
  const std::string sweep = "sweep " + tiny() + "--schedule 1f1b,gpipe,zb-h2 --gbs 2,4 --store " + store +
                            " --execute cpu --execute-iterations 2 --execute-warmup 0 ";
  const Outcome rows = run_program(sweep + "--jsonl");
  ASSERT_EQ(rows.exit_code, 0) << rows.err;
  std::istringstream lines(rows.out);
  int done = 0;
  for (std::string text; std::getline(lines, text);) {
    const Json row = Json::parse(text);
    EXPECT_EQ(row.contains("executed_step_time_s"), row["state"] == "done") << text;
    if (row["state"] != "done") continue;
    ++done;
    const double predicted = row["step_time_s"], executed = row["executed_step_time_s"];
    EXPECT_NEAR(row["step_time_error"].get<double>(), predicted / executed - 1, 1e-9);
    EXPECT_GT(row["executed_bubble_fraction"]["mean"].get<double>(), 0);
  }
  EXPECT_GE(done, 4);
  const Outcome table = run_program(sweep + "--resume");
  EXPECT_THAT(table.out, HasSubstr("executed"));
  EXPECT_NE(run_program("sweep " + tiny() + "--gbs 2,4 --resume --store " + store).exit_code, 0)
      << "rows that were not executed are another sweep";
}

TEST(SweepExecute, WhatCannotBeExecutedIsARowWithItsReason) {
  const std::string store = temporary_file("refused.db", "");
  std::filesystem::remove(store);
  const Outcome rows = run_program("sweep " + tiny() + "--gbs 2,4 --slow rank=1:0.5 --jsonl --store " +
                                   store + " --execute cpu");
  EXPECT_EQ(rows.exit_code, 1);
  const Json row = Json::parse(rows.out.substr(0, rows.out.find('\n')));
  EXPECT_EQ(row["state"], "failed");
  EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("slow"));
}

}  // namespace
}  // namespace rehearse
