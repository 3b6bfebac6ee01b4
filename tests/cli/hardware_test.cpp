// The user's description of the hardware decides, not the name of a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_reader.h"
#include "program.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::Not;

// Step times of a sweep over values of one figure.
std::vector<double> steps_over(const std::string& run, const std::string& figure, const std::string& values) {
  const Outcome outcome =
      run_program("sweep " + run + " --engine reference --jsonl - --set cluster." + figure + "=" + values);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<double> steps;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);)
    steps.push_back(Json::parse(line).at("step_time_s").get<double>());
  return steps;
}

constexpr const char* kPeaks = "1000TFLOPS,1979TFLOPS,4000TFLOPS,8000TFLOPS";

TEST(Hardware, AFasterGpuMakesNoStepSlower) {
  const std::string llama =
      "--model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 16 --mbs 2 --seq 4096 --zero 1";
  const std::string experts = "--model mixtral-8x7b --cluster dgx-h100 --gpus 64 --ep 8 --gbs 64 --seq 4096 --zero 1 "
      "--recompute full";
  for (const auto& [run, figure, values] :
       {std::tuple(llama + " --precision fp8", "gpu.peak.fp8", kPeaks),
        {experts + " --precision fp8", "gpu.peak.fp8", kPeaks},
        {llama, "gpu.peak.bf16", "495TFLOPS,791TFLOPS,989TFLOPS,1978TFLOPS,3956TFLOPS"},
        {llama, "gpu.memory_bandwidth", "1.6TB/s,3.35TB/s,6.7TB/s,13.4TB/s"},
        {experts, "gpu.memory_bandwidth", "1.6TB/s,3.35TB/s,6.7TB/s,13.4TB/s"}}) {
    const std::vector<double> steps = steps_over(run, figure, values);
    ASSERT_GE(steps.size(), 4u);
    for (std::size_t i = 1; i < steps.size(); ++i) EXPECT_LT(steps[i], steps[i - 1]) << run << " " << figure;
  }
}

TEST(Hardware, OneRunTakesAFigureAsARowOfASweepDoes) {
  const std::string run = "--model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 32 --seq 4096 --zero 1";
  const std::string figure = "node.nics.bandwidth", value = "100Gbps";
  const Outcome outcome = run_program("simulate " + run + " --engine reference --json --set cluster." + figure + "=" + value);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_DOUBLE_EQ(report.at("step_time_s"), steps_over(run, figure, value).front());
  EXPECT_THAT(report.at("warnings").dump(), HasSubstr("the cluster is changed"));
}

TEST(Hardware, AFigureThatHardlyCountsIsNamed) {
  const std::string run = "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 --seq 4096 --json --set ";
  EXPECT_THAT(run_program(run + "cluster.node.gpu_link.latency=1s").out, HasSubstr("NCCL's constants stand for it"));
  EXPECT_THAT(run_program(run + "cluster.node.gpu_link.bandwidth=100GB/s").out, Not(HasSubstr("stand for it")));
}

TEST(Hardware, AReportSaysThatItsProfileIsCarriedOver) {
  Json scenario = {{"model", "llama3-8b"},
                   {"cluster", "dgx-h100"},
                   {"gpus", 8},
                   {"plan", {{"tp", 8}, {"global_batch", 8}}}};
  const auto run = [&](const std::string& flags) {
    return run_program("simulate " + temporary_file("scenario.json", scenario.dump()) + flags);
  };
  const Json own = Json::parse(run(" --json").out);
  EXPECT_EQ(own.at("profile").at("gpu"), "H100-SXM5-80GB");
  EXPECT_EQ(own.at("profile").at("carried_over"), Json::array());
  EXPECT_THAT(run("").out, Not(HasSubstr("scaled to this GPU")));
  scenario["cluster_changes"] = {{"gpu", {{"peak", {{"bf16", "2000TFLOPS"}}}}}};
  const Json carried = Json::parse(run(" --json").out);
  EXPECT_EQ(carried.at("profile").at("carried_over"), Json({"bf16 peak 989 -> 2000 TFLOPS"}));
  EXPECT_THAT(run("").out,
              HasSubstr("profile of H100-SXM5-80GB, scaled to this GPU: bf16 peak 989 -> 2000 TFLOPS"));
  const auto width = [](const Json& report) {
    const Json& band = report.at("step_time_band_s");
    return (band[1].get<double>() - band[0].get<double>()) / report.at("step_time_s").get<double>();
  };
  EXPECT_GT(width(carried), 1.05 * width(own));
}

TEST(Hardware, AProfileWithoutMultiprocessorsIsNamed) {
  Json profile = read_json_file(SOURCE_DIR "/calibrate/profiles/h100-sxm.json");
  profile["gpu"].erase("multiprocessors");
  const Outcome outcome =
      run_program("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 --profile " +
                  temporary_file("old.json", profile.dump()));
  EXPECT_THAT(outcome.out, HasSubstr("does not state /gpu/multiprocessors of H100-SXM5-80GB: the 132 of the "
                                     "cluster's GPU are used"));
}

constexpr const char* kRun =
    " --model llama3-8b --tp 8 --gpus 64 --mbs 1 --gbs 64 --seq 8192 --engine reference --json";

Json simulated(const std::string& cluster) {
  const Outcome outcome = run_program("simulate --cluster " + cluster + kRun);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

Json shipped(const char* name) {
  return read_json_file(std::string(SOURCE_DIR "/topologies/") + name + ".json");
}

TEST(Hardware, AClusterFileGoesByWhatItSays) {
  Json original = simulated("dgx-h100");
  EXPECT_EQ(original.at("collectives"), "measured on dgx-h100");
  Json copy = simulated(temporary_file("bought-in-may.json", shipped("dgx-h100").dump()));
  original.erase("cluster");
  copy.erase("cluster");
  EXPECT_EQ(copy, original);
}

TEST(Hardware, RestatedNicsChangeNothing) {
  const Json nics = shipped("dgx-h100").at("node").at("nics");
  const std::string file = temporary_file("restated.json", Json{{"schema", "rehearse.cluster/1"},
                                                                {"source", "me"},
                                                                {"like", "dgx-h100"},
                                                                {"node", {{"nics", nics}}}}
                                                               .dump());
  EXPECT_EQ(simulated(file).at("step_time_s"), simulated("dgx-h100").at("step_time_s"));
}

// Called dgx-h100, but it is an A100's.
TEST(Hardware, ANameInheritsNothing) {
  const Json named = simulated(temporary_file("dgx-h100.json", shipped("dgx-a100-80gb").dump()));
  EXPECT_EQ(named.at("collectives"), "measured on dgx-a100-80gb");
  EXPECT_EQ(named.at("step_time_s"), simulated("dgx-a100-80gb").at("step_time_s"));
}

TEST(Hardware, TheSummaryNamesTheSystemAndWhatDiffers) {
  Json half = shipped("dgx-h100");
  half["node"]["nics"]["bandwidth"] = "200Gbps";
  const Outcome outcome = run_program("simulate --cluster " + temporary_file("half.json", half.dump()) +
                                      " --model llama3-8b --tp 8 --gpus 64 --gbs 64 --engine reference");
  EXPECT_THAT(outcome.out, HasSubstr("collectives  measured on dgx-h100 within a node, as measured on "
                                     "dgx-h100, except NICs across nodes"));
}

}  // namespace
}  // namespace rehearse
