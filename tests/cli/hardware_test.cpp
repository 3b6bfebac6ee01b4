// What a user says of the hardware decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_reader.h"
#include "program.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

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
  const std::string llama = "--model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 16 --mbs 2 --seq 4096";
  const std::string experts = "--model mixtral-8x7b --cluster dgx-h100 --gpus 64 --ep 8 --gbs 64 --seq 4096";
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

TEST(Hardware, AReportSaysThatItsProfileIsCarriedOver) {
  Json scenario = {{"model", "llama3-8b"}, {"cluster", "dgx-h100"}, {"gpus", 8},
                   {"plan", {{"tp", 8}, {"global_batch", 8}}}};
  const auto run = [&](const std::string& flags) {
    return run_program("simulate " + temporary_file("scenario.json", scenario.dump()) + flags);
  };
  const Json own = Json::parse(run(" --json").out);
  EXPECT_EQ(own.at("profile").at("gpu"), "H100-SXM5-80GB");
  EXPECT_EQ(own.at("profile").at("carried_over"), Json::array());
  EXPECT_THAT(run("").out, Not(HasSubstr("carried over")));
  scenario["cluster_changes"] = {{"gpu", {{"peak", {{"bf16", "2000TFLOPS"}}}}}};
  const Json carried = Json::parse(run(" --json").out);
  EXPECT_EQ(carried.at("profile").at("carried_over"), Json({"bf16 peak 989 -> 2000 TFLOPS"}));
  EXPECT_THAT(run("").out, HasSubstr("profile of H100-SXM5-80GB, carried over: bf16 peak 989 -> 2000 TFLOPS"));
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
  EXPECT_THAT(outcome.out, HasSubstr("does not state /gpu/multiprocessors of H100-SXM5-80GB: those of the "
                                     "cluster's GPU, 132, are taken"));
}

}  // namespace
}  // namespace rehearse
