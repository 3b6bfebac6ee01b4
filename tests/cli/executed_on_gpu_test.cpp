// Measured times of GPUs. Pipelines on partitions of an H100 are predicted from kernels timed on the same
// partitions. One rank on a whole H100 or H200 is predicted from published tables.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using Json = nlohmann::json;

constexpr double kStep = 0.05, kBubble = 0.015;  // of the step time; of the step, in shares of it

class ExecutedOnGpu : public testing::TestWithParam<std::string> {};  // cluster

TEST_P(ExecutedOnGpu, IsPredictedWithinAFewPercent) {
  std::ifstream file(SOURCE_DIR "/calibrate/data/executed/h100_parts.json");
  const Json executed = Json::parse(file);
  int runs = 0;
  double off = 0;
  for (const Json& run : executed["runs"]) {
    if (run["cluster"] != GetParam()) continue;
    const Outcome done =
        run_program("simulate --model scenarios/models/gpt-420m.json --cluster " + GetParam() + " --gpus " +
                    run["pp"].dump() + " --pp " + run["pp"].dump() + " --vpp " + run["vpp"].dump() +
                    " --schedule " + run["schedule"].get<std::string>() + " --gbs " +
                    run["microbatches"].dump() + " --mbs 1 --seq 2048 --precision bf16 --json");
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Json predicted = Json::parse(done.out);
    const double error = predicted["step_time_s"].get<double>() / run["step_time_s"].get<double>() - 1;
    const double bubble =
        predicted["bubble_fraction"]["mean"].get<double>() - run["bubble_mean"].get<double>();
    EXPECT_LT(std::abs(error), kStep) << run;
    EXPECT_LT(std::abs(bubble), kBubble) << run;
    off += std::abs(error);
    ++runs;
  }
  ASSERT_GE(runs, 12);
  RecordProperty("mean_error", std::to_string(off / runs));
  EXPECT_LT(off / runs, 0.025);
}

// The host was ahead of these GPUs, as with CUDA graphs.
TEST(ExecutedOnOneGpu, IsPredictedWithinFourPercentFromPublishedTables) {
  std::ifstream file(SOURCE_DIR "/calibrate/data/executed/one_gpu.json");
  const Json executed = Json::parse(file);
  for (const Json& run : executed["runs"]) {
    const Outcome done =
        run_program("simulate --model scenarios/models/gpt-420m.json --cluster " +
                    run["cluster"].get<std::string>() + " --gpus 1 --gbs 16 --mbs " +
                    run["micro_batch"].dump() + " --seq 2048 --precision bf16 --cuda-graph on --json");
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const double predicted = Json::parse(done.out)["step_time_s"].get<double>();
    EXPECT_NEAR(predicted / run["step_time_s"].get<double>(), 1, 0.04) << run;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, ExecutedOnGpu, testing::Values("h100-halves", "h100-quarters"));

}  // namespace
}  // namespace rehearse
