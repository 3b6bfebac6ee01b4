// `--schedule auto`, from the command line to the files that it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kPlan =
    "--model llama3-8b --cluster dgx-h100 --gpus 32 --tp 8 --pp 4 --gbs 8 --seq 4096 --vpp 2 ";
const std::string kAuto = "--schedule auto --schedule-seconds 0.3 ";

Json simulated_auto(const std::string& flags) {
  const Outcome run = run_program("simulate --json " + flags);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? Json::parse(run.out) : Json();
}

TEST(AutoSchedule, IsNoSlowerThanTheBestNamedOneAndSaysHowFarFromTheBound) {
  const Json found = simulated_auto(kPlan + kAuto);
  const Json& search = found.at("schedule_search");
  const double step = found.at("step_time_s");
  EXPECT_LE(step, search.at("best_named").at("step_time_s").get<double>() * (1 + 1e-9));
  EXPECT_GE(step, search.at("least_step_time_s").get<double>());
  EXPECT_NEAR(search.at("gap").get<double>(), step / search.at("least_step_time_s").get<double>() - 1, 1e-9);
  EXPECT_EQ(found.at("plan").at("schedule"), "auto");
  for (const char* named : {"interleaved-1f1b", "zb-v"})
    EXPECT_LE(step,
              simulated_auto(kPlan + "--overlap-p2p on --schedule " + named).at("step_time_s").get<double>() *
                  (1 + 1e-9))
        << named;
}

// Without a common begin, a step lasts as long as its longest rank. That is less than any bound from a common
// begin.
TEST(AutoSchedule, ProvesNoBoundForRanksThatStepOnTheirOwn) {
  const std::string own = kPlan + "--sync-step off --clip-grad 0 ";
  const Json found = simulated_auto(own + kAuto);
  EXPECT_TRUE(found.at("schedule_search").at("least_step_time_s").is_null());
  EXPECT_THAT(found.at("warnings").dump(), HasSubstr("with --sync-step off the search proves no bound"));
  EXPECT_LE(
      found.at("step_time_s").get<double>(),
      simulated_auto(own + "--overlap-p2p on --schedule zb-v").at("step_time_s").get<double>() * (1 + 1e-9));
}

TEST(AutoSchedule, IsTheSameEachTime) {
  const std::string export_it = "export schedule " + kPlan + kAuto;
  const Outcome once = run_program(export_it), again = run_program(export_it);
  ASSERT_EQ(once.exit_code, 0) << once.err;
  EXPECT_EQ(once.out, again.out);
}

TEST(AutoSchedule, ComesBackFromItsCsvAsTheSameRun) {
  const Json found = simulated_auto(kPlan + kAuto);
  const Outcome csv = run_program("export schedule " + kPlan + kAuto);
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  const Json back = simulated_auto(with(kPlan, "--schedule " + temporary_file("found.csv", csv.out)));
  EXPECT_NEAR(back.at("step_time_s").get<double>(), found.at("step_time_s").get<double>(), 1e-9);
  EXPECT_EQ(run_program("check " + kPlan + kAuto).exit_code, 0);
}

TEST(AutoSchedule, KeepsTheMemoryThatItIsGiven) {
  const Json search = simulated_auto(kPlan + kAuto).at("schedule_search");
  const double ample = search.at("memory_bytes");
  EXPECT_TRUE(search.at("fits"));
  const Json leaner = simulated_auto(kPlan + kAuto + "--schedule-memory 10GB");
  EXPECT_LT(leaner.at("schedule_search").at("memory_bytes").get<double>(), ample);
  EXPECT_LE(leaner.at("memory").at("needed_bytes").get<double>(), 10e9);
  const Outcome little = run_program("simulate --json " + kPlan + kAuto + "--schedule-memory 3GB");
  EXPECT_EQ(little.exit_code, 2);
  EXPECT_THAT(little.err, HasSubstr("no order was found that needs so little memory"));
}

TEST(AutoSchedule, SaysThatItsFlagsAreIgnoredBesideANamedSchedule) {
  const Outcome run = run_program("simulate " + kPlan + "--schedule interleaved-1f1b --schedule-memory 60GB");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out + run.err, HasSubstr("schedule_memory is ignored: the schedule is not auto"));
}

TEST(AutoSchedule, IsOneOfTheSchedulesOfASweep) {
  const Outcome run =
      run_program("sweep --csv - " + kPlan + "--schedule interleaved-1f1b,auto --schedule-seconds 0.1");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("interleaved-1f1b"), HasSubstr("auto")));
}

TEST(AutoSchedule, IsSoughtForTheBestPlans) {
  const Outcome run = run_program(
      "plan --json --model llama3-8b --cluster dgx-h100 --gpus 8 --gbs 16 --tp 2 --pp 4 --zero 0 --recompute "
      "none "
      "--schedule auto --schedule-seconds 0.1 --top 1");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out).at("plans").at(0).at("report").at("plan").at("schedule"), "auto");
}

TEST(AutoSchedule, ChoosesChunksAndLayers) {
  const std::string plan = "--model llama3-8b --cluster dgx-h100 --gpus 4 --pp 4 --gbs 8 --seq 4096 ";
  const Json moved = simulated_auto(plan + kAuto + "--layers-per-stage auto");
  EXPECT_LT(moved.at("step_time_s").get<double>(),
            simulated_auto(plan + kAuto).at("step_time_s").get<double>());
}

TEST(AutoSchedule, IsExplainedBesideTheBestNamedOne) {
  const Outcome run = run_program("explain schedule " + kPlan + kAuto);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("backwards split into I and W"), HasSubstr("best named"),
                             HasSubstr("Both on one time axis")));
}

}  // namespace
}  // namespace rehearse
