// An option that is not counted and can turn the answer stands in the first line of it. An import says how
// much it read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

const std::string kOnGpus = " --model llama3-8b --cluster dgx-h100 --gpus 8 -o ";

std::string imported(const std::string& name, const std::string& yaml) {
  const std::string file = temporary_file(name + ".yaml", yaml), out = temporary_file(name + ".json", "");
  std::filesystem::remove(out);
  const Outcome run = run_program("import " + file + kOnGpus + out);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return out;
}

const std::string kTraining =
    "base_model: x\nsequence_len: 4096\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\n"
    "optimizer: adamw_torch\n";

TEST(OmittedEffect, LeavesTheVerdictOnMemoryOpen) {
  const std::string lora = imported("lora", kTraining + "adapter: lora\n");
  const std::string line = "not a verdict: adapter lora (less memory, less time) is not counted";
  for (const char* verb : {"simulate", "memory", "check"}) {
    const Outcome run = run_program(std::string(verb) + " " + lora);
    EXPECT_EQ(run.exit_code, 2) << verb << ": neither that it fits nor that it does not";
    EXPECT_THAT(run.out, StartsWith(line)) << verb;
    EXPECT_THAT(run.out, AllOf(HasSubstr("not decided: as counted, "), Not(HasSubstr("does not fit"))))
        << verb;
  }
  const Json report = Json::parse(run_program("simulate --json --allow-oom " + lora).out);
  EXPECT_EQ(report["memory"]["verdict"], "not decided");
  EXPECT_EQ(report["omitted_effects"][0]["option"], "adapter lora");
  EXPECT_THAT(report["omitted_effects"][0]["changes"], Contains("less memory"));
  const std::string full = imported("full", kTraining);
  EXPECT_EQ(run_program("check " + full).exit_code, 3) << "the same run with all parameters trained";
}

TEST(OmittedEffect, DoesNotOpenAVerdictThatItOnlyConfirms) {
  const std::string sharded = imported("sharded", kTraining +
                                                      "adapter: lora\ngradient_checkpointing: true\n"
                                                      "fsdp_config: {sharding_strategy: FULL_SHARD}\n");
  const Outcome run = run_program("check " + sharded);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("not a verdict: adapter lora"), HasSubstr("fits: ")))
      << "it fits with all parameters trained, and so with fewer";
}

TEST(Coverage, IsOneLineAndAKey) {
  const std::string file = temporary_file("covered.yaml", kTraining);
  const Outcome run = run_program("import " + file + " --json --cluster dgx-h100 --gpus 8");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("read 6 of the 16 values that shape a step; assumed: layers, hidden size"));
  const Json coverage = Json::parse(run.out)["coverage"];
  EXPECT_THAT(coverage["read"], AllOf(Contains("sequence length"), Contains("GPUs"), Contains("optimizer")));
  EXPECT_THAT(coverage["assumed"], AllOf(Contains("vocabulary"), Contains("tensor parallelism")));
  EXPECT_EQ(coverage["read"].size() + coverage["assumed"].size(), coverage["of"]);
}

TEST(Coverage, OfNothingIsRefused) {
  const std::string file = temporary_file("other.sh", "torchrun --nproc-per-node 8 --nnodes 4 train.py\n");
  const Outcome run = run_program("import megatron " + file + " --cluster dgx-h100 --model llama3-8b");
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_THAT(run.err, HasSubstr("sets neither the network nor the plan"));
}

TEST(Import, NamesFilesFromTheFolderOfTheScenario) {
  const std::string folder =
      std::filesystem::path(temporary_file("apart.txt", "")).parent_path().string() + "/apart";
  std::filesystem::create_directories(folder);
  const Outcome run =
      run_in_bash("set -e; cp scenarios/models/llama3-8b.json " + folder + "/own.json; mkdir -p " + folder +
                  "/sub\n" + "cd " + folder +
                  "; echo \"{\\\"train_micro_batch_size_per_gpu\\\": 1, \\\"bf16\\\": "
                  "{\\\"enabled\\\": true}}\" > ds.json\n"
                  "$R import deepspeed ds.json --model own.json --cluster dgx-h100 --gpus 8 -o sub/a.json\n"
                  "$R check sub/a.json --zero 3 --recompute full");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::stringstream text;
  text << std::ifstream(folder + "/sub/a.json").rdbuf();
  EXPECT_EQ(Json::parse(text.str())["model"], "../own.json");
}

TEST(Framework, OlderReleasesTrainDenseModels) {
  for (const char* release : {"0.7", "0.9", "0.12", "0.13"}) {
    const Outcome run = run_program(
        std::string("check --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 --framework "
                    "megatron-core@") +
        release);
    EXPECT_EQ(run.exit_code, 0) << release << run.err;
  }
}

}  // namespace
}  // namespace rehearse
