// Schedules as PyTorch's CSV, out and in again.
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
    "--model llama3-8b --cluster dgx-h100 --gpus 32 --tp 2 --pp 4 --gbs 32 --overlap-p2p on ";

Json simulated_with(const std::string& flags) {
  const Outcome run = run_program("simulate --json --engine reference " + flags);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? Json::parse(run.out) : Json();
}

struct Named {
  const char* schedule;
  const char* flags;
};

class ScheduleFile : public ::testing::TestWithParam<Named> {};

TEST_P(ScheduleFile, ComesBackAsTheRunThatItWas) {
  const std::string flags = with(kPlan, GetParam().flags);
  const std::string named = flags + "--schedule " + GetParam().schedule + " ";
  const Json whole = simulated_with(named);
  for (const char* form : {"compute", "full"}) {
    const Outcome out = run_program("export schedule --form " + std::string(form) + " " + named);
    ASSERT_EQ(out.exit_code, 0) << out.err;
    const std::string file = temporary_file("order.csv", out.out);
    const Json back = simulated_with(flags + "--schedule " + file);
    EXPECT_NEAR(back["step_time_s"].get<double>(), whole["step_time_s"].get<double>(),
                1e-9 * whole["step_time_s"].get<double>())
        << form;
    EXPECT_EQ(back["memory"], whole["memory"]) << form;
    EXPECT_EQ(back["plan"]["schedule"], "order.csv");
    const Outcome again =
        run_program("export schedule --form " + std::string(form) + " " + flags + "--schedule " + file);
    EXPECT_EQ(again.out, out.out) << form;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ScheduleFile,
                         ::testing::Values(Named{"gpipe", ""}, Named{"1f1b", ""},
                                           Named{"interleaved-1f1b", "--vpp 2"}, Named{"zb-h1", ""},
                                           Named{"zb-h2", ""}, Named{"zb-v", "--vpp 2"},
                                           Named{"v-half", "--vpp 2"}, Named{"v-min", "--vpp 2"},
                                           Named{"dualpipe-v", "--vpp 2"}, Named{"1f1b", "--overlap-p2p off"},
                                           Named{"interleaved-1f1b", "--vpp 2 --overlap-p2p off"},
                                           Named{"zb-h1", "--overlap-p2p off"},
                                           Named{"zb-v", "--vpp 2 --overlap-p2p off"}));

TEST(ScheduleFile, OfPyTorchIsSimulatedCheckedAndExecuted) {
  // torch.distributed.pipelining writes idle steps as empty cells.
  const std::string file = temporary_file("pytorch.csv", "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n");
  const std::string model = temporary_file("tiny_gpt.json", R"({
    "model_type": "gpt2", "activation_function": "gelu_new", "n_layer": 4, "n_embd": 64, "n_head": 4,
    "n_positions": 64, "vocab_size": 128, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})");
  const std::string flags =
      " scenarios/gpt-10m-2-cores.json --seq 16 --mbs 1 --gbs 2 --model " + model + " --schedule ";
  const Outcome checked = run_program("check" + flags + file);
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const Outcome own = run_program("execute --iterations 1 --warmup 1 --json" + flags + "1f1b");
  const Outcome given = run_program("execute --iterations 1 --warmup 1 --json" + flags + file);
  ASSERT_EQ(given.exit_code, 0) << given.err;
  EXPECT_EQ(Json::parse(given.out)["execution"]["losses"], Json::parse(own.out)["execution"]["losses"]);
  EXPECT_NEAR(Json::parse(given.out)["bubble_fraction_ideal"].get<double>(), 1.0 / 3, 1e-12);
}

TEST(ScheduleFile, OfOneRankWithTwoChunksNeedNotInterleave) {
  const std::string plan = with(kPlan, "--pp 1 --vpp 2 --zero 1"), named = plan + "--schedule zb-v ";
  const std::string file = temporary_file("one_rank.csv", run_program("export schedule " + named).out);
  EXPECT_EQ(simulated_with(plan + "--schedule " + file)["step_time_s"], simulated_with(named)["step_time_s"]);
}

TEST(ScheduleFile, WithAllForwardsFirstOffloadsAsGPipe) {
  const std::string named =
      "--model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 2 --offload activations ";
  const std::string gpipe = named + "--schedule gpipe ";
  const std::string file = temporary_file("forwards_first.csv", run_program("export schedule " + gpipe).out);
  EXPECT_EQ(simulated_with(named + "--schedule " + file)["step_time_s"],
            simulated_with(gpipe)["step_time_s"]);
  EXPECT_EQ(run_program("check " + named + "--schedule 1f1b").exit_code, 2);
}

TEST(ScheduleFile, StepsAsThePlanSays) {
  const std::string named = kPlan + "--clip-grad 1 --sync-step on ";
  const std::string file = temporary_file("clipped.csv", run_program("export schedule " + named).out);
  EXPECT_EQ(simulated_with(named + "--schedule " + file)["time_s"], simulated_with(named)["time_s"]);
}

TEST(ScheduleFile, FaultsAreNamedWithRowAndCell) {
  const auto refusal = [](const std::string& csv, const std::string& flags) {
    const Outcome run =
        run_program("check " + with(kPlan, flags + " --pp 2 --schedule " + temporary_file("bad.csv", csv)));
    EXPECT_EQ(run.exit_code, 2) << run.err;
    return run.err;
  };
  const std::string good = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_THAT(refusal("0F0,0F1,0B0,0B1\n1F0,1Q0,1F1,1B1\n", "--gbs 16"), HasSubstr("bad.csv: row 2, cell 2"));
  EXPECT_THAT(refusal(good, "--gbs 32"), AllOf(HasSubstr("--gbs"), HasSubstr("global batch 16")));
  EXPECT_THAT(refusal(good, "--gbs 16 --vpp 2"), HasSubstr("--vpp"));
  EXPECT_THAT(refusal("0F0,0B0\n1F0,1B0\n2F0,2B0\n", "--gbs 8"), HasSubstr("pp = 3"));
  EXPECT_THAT(refusal("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n", "--gbs 16"), HasSubstr("0B1"));
  EXPECT_THAT(refusal("0B0,0F0\n1F0,1B0\n", "--gbs 8"), HasSubstr("0B0"));
  EXPECT_THAT(refusal("0F0,1F0,1B0,0B0\n2F0,3F0,3B0,2B0\n", "--gbs 8 --vpp 2"), HasSubstr("lies on rank"));
  EXPECT_EQ(run_program("check " + kPlan + "--schedule %/nowhere.csv").exit_code, 2);
}

TEST(Export, WritesLaunchLinesOrSaysWhyThereAreNone) {
  const std::string scenario = "scenarios/llama3-70b-512-h100.json";
  EXPECT_THAT(run_program("export megatron " + scenario).out, HasSubstr("--tensor-model-parallel-size 8"));
  EXPECT_EQ(run_program("export megatron " + scenario).err, "");
  EXPECT_THAT(run_program("export megatron " + scenario + " --sync-step off").err,
              HasSubstr("note: Megatron-LM cannot express this plan's sync_step\n"));
  EXPECT_THAT(run_program("export torchtitan scenarios/fsdp2-llama3-8b.json").out,
              HasSubstr("[parallelism]"));
  const Outcome none = run_program("export deepspeed " + scenario);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("DeepSpeed"));
  EXPECT_EQ(run_program("export nonsense " + scenario).exit_code, 2);
}

}  // namespace
}  // namespace rehearse
