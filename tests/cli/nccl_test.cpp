// nccl-tests at the command line: tables predicted, logs made into profiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kNccl = "calibrate/data/nccl/";

TEST(Validate, NcclPrintsTheKeysThatScriptsRead) {
  const Outcome outcome = run_program("validate --nccl " + kNccl + "h100x8_dgxc_all_reduce.json " + kNccl +
                                      "a100_abci_1x4_all_reduce.json --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const Json& table = json.at("tables").at(1);
  EXPECT_EQ(table.at("file"), "a100_abci_1x4_all_reduce.json");
  EXPECT_EQ(table.at("cluster"), "abci-a100");
  EXPECT_EQ(table.at("op"), "all_reduce");
  EXPECT_EQ(table.at("n_nodes"), 1);
  EXPECT_EQ(table.at("gpus_per_node"), 4);
  EXPECT_EQ(table.at("irregular"), false);
  EXPECT_TRUE(table.at("skipped").is_null());
  EXPECT_TRUE(table.at("median_abs").at("large").is_null());  // it ends at 32 MiB
  EXPECT_TRUE(table.at("median_abs").at("small").is_number());
  EXPECT_EQ(json.at("summary").at("n_tables"), 2);
  EXPECT_EQ(json.at("summary").at("n_rows"), 32 + 24);
  for (const char* size : {"small", "middle", "large", "all"}) {
    EXPECT_TRUE(json.at("summary").at("median_abs").at(size).is_number());
    EXPECT_TRUE(json.at("summary").at("p90_abs").at(size).is_number());
  }
}

TEST(CalibrateImport, MakesAProfileThatPredictsTheLog) {
  const std::string path = temporary_file("own.json", "");
  const Outcome outcome =
      run_program("calibrate import " + kNccl +
                  "logs/h100x8_newformat_allreduce.log --cluster dgx-h100 --name own -o " + path);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("32 rows of all_reduce over 8 GPUs on 1 node"));
  const Outcome check =
      run_program("validate --json --profile " + path + " --nccl " + kNccl + "h100x8_dgxc_all_reduce.json");
  ASSERT_EQ(check.exit_code, 0) << check.err;
  const Json summary = Json::parse(check.out).at("summary");
  EXPECT_NEAR(summary.at("median_abs").at("all").get<double>(), 0, 1e-3);
  // Some rows of the log are longer than those of larger messages.
  EXPECT_NEAR(summary.at("p90_abs").at("all").get<double>(), 0, 0.04);
  const Outcome run =
      run_program("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 --profile " + path);
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(CalibrateImport, MergesIntoAProfileAndReplacesWhatWasMeasuredBefore) {
  const std::string path = temporary_file("merged.json", "");
  const std::string log =
      "calibrate import " + kNccl + "logs/h100x8_newformat_allreduce.log --cluster dgx-h100 -o " + path;
  ASSERT_EQ(run_program(log).exit_code, 0);
  ASSERT_EQ(run_program(log + " --into " + path).exit_code, 0);
  const Outcome more =
      run_program("calibrate import " + kNccl + "logs/h100_p5_2x8_srun_prefix_allreduce.log --nodes 2 " +
                  "--gpus-per-node 8 --cluster dgx-h100 --into " + path);
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(Json::parse(more.out).at("collectives").at("measured").size(), 2U);
}

TEST(CalibrateImport, ForAClusterWithoutAProfileMakesOneOfCollectivesAlone) {
  const Outcome outcome = run_program("calibrate import " + kNccl +
                                      "logs/v100_2x4_multinode_broadcast.log --cluster azure-nd-mi300x-v5");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json profile = Json::parse(outcome.out);
  EXPECT_EQ(profile.at("collectives").at("measured").at(0).at("op"), "broadcast");
  EXPECT_EQ(profile.at("collectives").at("measured").at(0).at("how"), "measured");
  EXPECT_EQ(profile.at("collectives").at("measured").at(0).at("members"), 8);
  EXPECT_TRUE(profile.at("gemm").empty());
}

TEST(Validate, NcclPredictsLogsAsItPredictsTables) {
  const std::string log = "tests/cost/data/plain_h100_2x8.log";
  const Outcome outcome = run_program("validate --nccl " + log + " --cluster dgx-h100 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json table = Json::parse(outcome.out).at("tables").at(0);
  EXPECT_EQ(table.at("n_nodes"), 2);
  EXPECT_EQ(table.at("gpus_per_node"), 8);
  EXPECT_TRUE(table.at("median_abs").at("large").is_number());
  const Outcome unplaced = run_program("validate --nccl " + log);
  EXPECT_EQ(unplaced.exit_code, 2);
  EXPECT_THAT(unplaced.err, HasSubstr("--cluster"));
}

TEST(CalibrateImport, WarnsOfALogOfAnotherGpu) {
  const Outcome outcome =
      run_program("calibrate import tests/cost/data/plain_h100_2x8.log --cluster dgx-a100");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: "));
  EXPECT_THAT(outcome.err, HasSubstr("NVIDIA H100 80GB HBM3"));
}

TEST(CalibrateImport, AsksForWhatALogDoesNotSay) {
  const auto complaint = [](const std::string& arguments) {
    const Outcome outcome = run_program("calibrate import " + kNccl + "logs/" + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    return outcome.err;
  };
  EXPECT_THAT(complaint("h100x8_newformat_allreduce.log"), HasSubstr("--cluster"));
  EXPECT_THAT(complaint("a100x8_oldformat_alltoall_novalidation.log --cluster dgx-a100-80gb"),
              HasSubstr("--op"));
  EXPECT_THAT(complaint("h100_p5_2x8_srun_prefix_allreduce.log --cluster aws-p5"), HasSubstr("--nodes"));
  EXPECT_THAT(complaint("v100_dgx2_12gpu_three_runs_out_of_bounds_failed.log --cluster dgx-2 --nodes 2 "
                        "--gpus-per-node 8"),
              HasSubstr("12 ranks listed, 2 x 8"));
  EXPECT_THAT(complaint("none.log --cluster aws-p5"), HasSubstr("none.log: no such file"));
  EXPECT_THAT(complaint("h100x8_newformat_allreduce.log --cluster atlantis"), HasSubstr("atlantis"));
  EXPECT_THAT(complaint("h100x8_newformat_allreduce.log --cluster dgx-h100 --op allreduce"),
              HasSubstr("all_reduce"));
}

}  // namespace
}  // namespace rehearse
