// Plans found by `plan` fit in all other verbs, and its automatic choices are no slower than the replaced
// ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The plan as flags; `group`: with its groups of microbatches.
std::string plan_flags(const Json& plan, bool group) {
  std::string flags;
  for (const char* key : {"tp", "cp", "pp", "vpp", "ep", "zero", "recompute", "schedule"})
    flags += std::string(" --") + key + " " + text_of(plan[key]);
  flags += " --mbs " + plan["micro_batch"].dump();
  if (group && plan["microbatch_group"] != 0)
    flags += " --microbatch-group " + plan["microbatch_group"].dump();
  return flags;
}

template <typename Values>
auto drawn(std::mt19937& random, const Values& values) {
  return values[random() % std::size(values)];
}

std::string drawn_job(std::mt19937& random) {
  constexpr const char* kModels[] = {"llama3-8b", "llama2-70b", "mixtral-8x7b", "gpt3-175b"};
  constexpr const char* kMachines[] = {"dgx-h100", "dgx-a100-80gb", "selene"};
  constexpr int kGpus[] = {8, 16, 64};
  return std::string("--model ") + drawn(random, kModels) + " --cluster " + drawn(random, kMachines) +
         " --gpus " + std::to_string(drawn(random, kGpus)) + " --gbs 64 --seq 2048 --engine reference";
}

void expect_fits(const std::string& job, const Json& found) {
  const std::string flags = job + plan_flags(found["plan"], true);
  const Outcome memory = run_program("memory " + flags + " --json");
  EXPECT_EQ(memory.exit_code, 0) << flags;
  const Json said = Json::parse(memory.out);
  EXPECT_NE(said["verdict"], "does not fit") << flags;
  EXPECT_EQ(said["verdict"], found["report"]["memory"]["verdict"]) << flags;
  EXPECT_GE(said["headroom_bytes"].get<double>(), 0.05 * said["capacity_bytes"].get<double>()) << flags;
  EXPECT_EQ(run_program("check " + flags).exit_code, 0) << flags;
  const bool needs = said["needs_expandable_segments"];
  EXPECT_EQ(found["launch"].contains("environment"), needs) << flags;
  EXPECT_EQ(said["verdict"], needs ? "tight" : "fits") << flags;
}

void expect_no_slower_than_the_default_group(const std::string& job, const Json& found) {
  if (found["plan"]["microbatch_group"] == 0) return;
  const Json report = Json::parse(
      run_program("simulate " + job + plan_flags(found["plan"], false) + " --allow-oom --json").out);
  EXPECT_LE(found["report"]["step_time_s"], report["step_time_s"]) << job;
}

TEST(PlanVerdict, OfEveryPlanThatIsListedIsTheSameEverywhere) {
  std::mt19937 random(55);
  int listed = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string job = drawn_job(random);
    const Outcome outcome = run_program("plan " + job + " --top 3 --json");
    const Json answer = Json::parse(outcome.out);
    EXPECT_EQ(outcome.exit_code, answer["plans"].empty() ? 3 : 0) << job << outcome.err;
    for (const Json& found : answer["plans"]) {
      expect_fits(job, found);
      expect_no_slower_than_the_default_group(job, found);
      ++listed;
    }
  }
  EXPECT_GT(listed, 5);
}

TEST(PlanVerdict, LeavesTheHeadroomThatIsAskedFor) {
  const std::string search =
      "plan --model llama3-70b --cluster dgx-h100 --gpus 64 --gbs 64 --seq 4096 --engine reference --tp 4,8 "
      "--cp 1 "
      "--mbs 1 --schedule 1f1b,interleaved-1f1b --zero 1 --recompute none --top 3 --json ";
  std::size_t before = 0;
  for (const char* headroom : {"0", "5%", "20GB"}) {
    const Json found = Json::parse(run_program(search + "--headroom " + headroom).out);
    const double wanted = found["plans"][0]["report"]["memory"]["headroom_wanted_bytes"];
    for (const Json& plan : found["plans"])
      EXPECT_GE(plan["report"]["memory"]["free_bytes"].get<double>(), wanted) << headroom;
    EXPECT_GE(found["does_not_fit"].get<std::size_t>(), before);
    before = found["does_not_fit"].get<std::size_t>();
  }
}

TEST(PlanVerdict, WithoutAPlanThatFitsSaysTheFewestGpus) {
  const std::string job = "--model llama3-70b --cluster dgx-h100 --gbs 32 --seq 8192 --engine reference ";
  const Outcome outcome = run_program("plan " + job + "--gpus 8 --json");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("the fewest GPUs on which it fits: "));
  const Json fewest = Json::parse(outcome.out)["fewest_gpus"];
  ASSERT_TRUE(fewest.is_object());
  EXPECT_GT(fewest["gpus"], 8);
  EXPECT_EQ(run_program("plan " + job + "--top 1 --gpus " + fewest["gpus"].dump()).exit_code, 0);
}

TEST(PlanVerdict, TakesTheFastestGroupOfMicrobatches) {
  const std::string job =
      "--model llama3-70b --cluster dgx-h100 --gpus 64 --gbs 16 --tp 8 --pp 8 --vpp 10 --mbs 1 --cp 1 "
      "--recompute none --schedule interleaved-1f1b --zero 0 --engine reference ";
  const Json found = Json::parse(run_program("plan " + job + "--json").out);
  ASSERT_EQ(found["plans"].size(), 1u);
  EXPECT_EQ(found["plans"][0]["plan"]["microbatch_group"], 16);
  const auto step = [&](const std::string& group) {
    return Json::parse(
        run_program("simulate " + job + "--json --microbatch-group " + group).out)["step_time_s"];
  };
  EXPECT_EQ(found["plans"][0]["report"]["step_time_s"], step("16"));
  EXPECT_LT(step("16"), step("8"));
  EXPECT_THAT(found["plans"][0]["launch"]["megatron"].get<std::string>(),
              HasSubstr("--microbatch-group-size-per-virtual-pipeline-stage 16"));
  const Json held = Json::parse(run_program("plan " + job + "--microbatch-group 8 --json").out);
  EXPECT_EQ(held["plans"][0]["plan"]["microbatch_group"], 8);
}

// The embedding, the multi-token prediction (MTP) layers and the head do not move between stages.
TEST(AutomaticLayers, AreTheModelsAndNoSlowerThanTheListThatShips) {
  const std::string scenario =
      "simulate scenarios/deepseek-v3-1024-h100-ep64.json --engine reference --json ";
  const auto report = [&](const std::string& flags) {
    return Json::parse(run_program(scenario + flags).out);
  };
  const double shipped = report("")["step_time_s"];
  for (const char* chunks : {"--vpp 1 ", "--vpp 2 ", "--vpp 4 "}) {
    const Json chosen = report(chunks + std::string("--layers-per-stage auto"));
    const std::vector<int> layers = chosen["plan"]["layers_per_stage"];
    EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 61) << chunks;
    if (chunks[6] == '4') continue;
    EXPECT_LE(chosen["step_time_s"].get<double>(), shipped * (1 + 1e-9)) << chunks;
  }
  std::string even;
  for (int stage = 0; stage < 64; ++stage) even += stage < 61 ? (stage > 0 ? ",1" : "1") : ",0";
  EXPECT_LE(report("--vpp 4 --layers-per-stage auto")["step_time_s"],
            report("--vpp 4 --layers-per-stage " + even)["step_time_s"]);
}

TEST(SimulateVerdict, StartsWithWhatDoesNotFitAndExitsWithThree) {
  const std::string plan =
      "simulate --model llama3.1-405b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 --engine reference ";
  const Outcome refused = run_program(plan + "--color always");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, StartsWith("\x1b[31mdoes not fit: "));
  EXPECT_THAT(refused.out, HasSubstr("of 85 GB on pipeline rank 0"));
  EXPECT_THAT(refused.out, HasSubstr("--gpus "));
  const std::string steps = refused.out.substr(refused.out.find("step time"));
  EXPECT_THAT(steps.substr(0, steps.find('\n')), Not(HasSubstr("\x1b[1m")));
  const Outcome allowed = run_program(plan + "--allow-oom");
  EXPECT_EQ(allowed.exit_code, 0);
  EXPECT_THAT(allowed.out, StartsWith("does not fit: "));
  const Outcome json = run_program(plan + "--json");
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_THAT(json.err, HasSubstr("does not fit: "));
  EXPECT_EQ(Json::parse(json.out)["memory"]["verdict"], "does not fit");
}

// The suggestion works: with the named flags the plan fits.
TEST(SimulateVerdict, NamesFlagsWithWhichItFits) {
  const std::string plan = "--model llama3-8b --cluster dgx-h100 --gpus 8 --tp 1 --pp 2 --gbs 32 --seq 8192 ";
  const Outcome refused = run_program("simulate " + plan + "--engine reference");
  EXPECT_EQ(refused.exit_code, 3);
  const std::string first = refused.out.substr(0, refused.out.find('\n')), words = "it fits with ";
  ASSERT_THAT(first, HasSubstr(words));
  const std::string flags = first.substr(first.find(words) + words.size());
  EXPECT_EQ(run_program("simulate " + plan + "--engine reference " + flags).exit_code, 0) << flags;
  EXPECT_EQ(run_program("check " + plan + flags).exit_code, 0) << flags;
}

TEST(Headroom, IsAShareOrBytes) {
  const std::string plan = "memory --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 --json ";
  const auto verdict = [&](const std::string& headroom) {
    return Json::parse(run_program(plan + "--headroom " + headroom).out)["verdict"];
  };
  EXPECT_EQ(verdict("0"), "fits");
  EXPECT_EQ(verdict("99%"), "tight");
  EXPECT_EQ(verdict("84GB"), "tight");
  EXPECT_EQ(verdict("1MB"), "fits");
  for (const char* wrong : {"5", "100%", "-1%", "a lot", "1e400%", "nan%", "-3GB"}) {
    const Outcome outcome = run_program(plan + "--headroom '" + wrong + "'");
    EXPECT_EQ(outcome.exit_code, 2) << wrong;
    EXPECT_THAT(outcome.err, HasSubstr("--headroom")) << wrong;
  }
}

}  // namespace
}  // namespace rehearse
