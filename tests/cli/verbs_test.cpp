#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(Verbs, HelpShowsVerbsAndExamples) {
  const Outcome program = run_program("--help");
  EXPECT_EQ(program.exit_code, 0);
  for (const char* verb : {"simulate", "check", "topo", "goodput", "init", "doctor", "completion"}) {
    EXPECT_THAT(program.out, HasSubstr(verb));
    const Outcome help = run_program(std::string(verb) + " --help");
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("rehearse"));
    EXPECT_THAT(help.out, HasSubstr("Example"));
  }
}

TEST(Verbs, VersionAsTextAndAsJson) {
  EXPECT_THAT(run_program("--version").out, HasSubstr("SimGrid"));
  const Outcome json = run_program("--json --version");
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_TRUE(Json::parse(json.out).contains("simgrid"));
  EXPECT_TRUE(Json::parse(run_program("--version --json").out).contains("simgrid"));
}

TEST(Verbs, DoctorSaysWhatThisMachineCanRun) {
  const Outcome outcome = run_program("doctor");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("topologies"));
  EXPECT_THAT(outcome.out, HasSubstr("CUDA"));
}

TEST(Verbs, DoctorListsWhatCanBeDoneWithEachTypeOfKernel) {
  const Outcome text = run_program("doctor --kernels");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("executed"));
  EXPECT_THAT(text.out, HasSubstr("\ntop_k "));
  const Json rows = Json::parse(run_program("doctor --kernels --json").out);
  const auto row = [&rows](const std::string& type) {
    for (const Json& each : rows)
      if (each["type"] == type) return each;
    return Json();
  };
  EXPECT_EQ(row("gemm bf16"), (Json{{"type", "gemm bf16"},
                                    {"priced", true},
                                    {"timed", true},
                                    {"executed", true},
                                    {"imported", false}}));
  EXPECT_EQ(row("gemm fp8")["timed"], true);
  EXPECT_EQ(row("gemm fp8")["executed"], false);
  EXPECT_EQ(row("gemm fp4")["timed"], false);
  EXPECT_EQ(row("gemm fp4")["imported"], true);
  EXPECT_EQ(row("top_k")["stream"], "softmax");
  EXPECT_EQ(row("eager")["priced"], true);
  EXPECT_EQ(row("eager")["executed"], false);
  EXPECT_EQ(row("dispatch")["timed"], false);
}

TEST(Verbs, DoctorTakesJsonWithKernelsOnly) {
  const Outcome outcome = run_program("doctor --json");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--kernels"));
}

TEST(Verbs, TopoShowsRoutesAndBisection) {
  const Json whole = Json::parse(run_program("topo dgx-h100 --gpus 512 --json").out);
  EXPECT_EQ(whole["nodes"], 64);
  EXPECT_DOUBLE_EQ(whole["bisection_bytes_per_s"].get<double>(), 32 * 8 * 50e9);
  const Json inside = Json::parse(run_program("topo dgx-h100 --route 0 7 --json").out);
  EXPECT_DOUBLE_EQ(inside["bandwidth_bytes_per_s"].get<double>(), 450e9);
  const Json across = Json::parse(run_program("topo dgx-h100 --route 0 8 --json").out);
  EXPECT_DOUBLE_EQ(across["bandwidth_bytes_per_s"].get<double>(), 50e9);
}

TEST(Verbs, GoodputComparesYoungsDalysAndTheSimulatedInterval) {
  const Outcome outcome = run_program(
      "goodput --gpus 16384 --mtbf-hours 50700 --checkpoint-seconds 20 --restart-seconds 600 --days 54 "
      "--interval-seconds 3600 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const double mean_s = 50700 * 3600.0 / 16384;
  EXPECT_DOUBLE_EQ(json["mean_between_failures_s"].get<double>(), mean_s);
  const Json& intervals = json["intervals"];
  ASSERT_EQ(intervals.size(), 4u);
  EXPECT_EQ(intervals[0]["by"], "given");
  EXPECT_NEAR(intervals[1]["interval_s"].get<double>(), std::sqrt(2 * 20 * mean_s), 1e-6);
  for (const Json& row : intervals) {
    EXPECT_NEAR(row["simulated_goodput"].get<double>(), row["expected_goodput"].get<double>(), 0.005);
    EXPECT_GE(intervals[3]["simulated_goodput"].get<double>(), row["simulated_goodput"].get<double>() - 5e-4);
  }
}

TEST(Verbs, InitWritesACommentedScenarioThatRunsAsItIs) {
  const std::string file = temporary_file("init.json", "mine");
  const Outcome refused = run_program("init -o " + file);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(file));
  std::ifstream kept(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "mine");
  ASSERT_EQ(run_program("init --force -o " + file).exit_code, 0);
  std::ifstream written(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), run_program("init").out);
  const Outcome run = run_program("simulate " + file + " --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["plan"]["dp"], 16);
}

TEST(Verbs, InitExplainsEveryFieldItSets) {
  const Json scenario = Json::parse(run_program("init").out);
  for (const Json& object : {scenario, scenario["plan"]}) {
    for (const auto& [key, value] : object.items()) {
      const bool plain = key.starts_with("_") || key == "schema" || key == "title" || key == "plan";
      EXPECT_TRUE(plain || object.contains("_" + key)) << key;
    }
  }
}

TEST(Verbs, CompletionAsksTheProgram) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = run_program(std::string("completion ") + shell);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("completion words -- "));
  }
  EXPECT_EQ(run_program("completion bash | bash -n; echo").exit_code, 0);
}

TEST(Verbs, TheTraceIsChromeJson) {
  const std::string file = temporary_file("trace.json", "");
  const Outcome outcome = run_program(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 8 --pp 2 --gbs 4 --trace " + file);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::ifstream in(file);
  EXPECT_TRUE(Json::parse(in).contains("traceEvents"));
}

TEST(Verbs, ColourIsOffWhenNobodyLooks) {
  const std::string command = "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 4";
  EXPECT_EQ(run_program(command).out.find('\033'), std::string::npos);
  EXPECT_NE(run_program(command + " --color always").out.find('\033'), std::string::npos);
}

}  // namespace
}  // namespace rehearse
