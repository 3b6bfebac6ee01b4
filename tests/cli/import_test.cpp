// Importing from the command line: the scenario that comes out can be simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string new_file(const std::string& name) {
  const std::string path = temporary_file(name, "");
  std::filesystem::remove(path);
  return path;
}

Json simulated(const std::string& scenario) {
  const Outcome run = run_program("simulate --json --engine reference " + scenario);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? Json::parse(run.out) : Json();
}

TEST(Import, WhatComesOutOfEachFrameworkCanBeSimulated) {
  const std::string out = new_file("imported.json");
  const Outcome megatron = run_program(
      "import megatron tests/frameworks/data/gpt3_175b.sh --cluster selene --gpus 1024 -o " + out);
  ASSERT_EQ(megatron.exit_code, 0) << megatron.err;
  EXPECT_THAT(megatron.err, HasSubstr("--rampup-batch-size is not modelled"));
  EXPECT_NEAR(simulated(out)["model"]["parameters"].get<double>(), 175e9, 3e9);
  const Outcome deepspeed = run_program(
      "import deepspeed tests/frameworks/data/ds_zero3.json --model llama2-7b --cluster dgx-a100 --gpus 64 "
      "-o " +
      out);
  ASSERT_EQ(deepspeed.exit_code, 0) << deepspeed.err;
  EXPECT_EQ(simulated(out)["plan"]["zero"], 3);
  const Outcome torchtitan = run_program(
      "import torchtitan tests/frameworks/data/llama3_70b.toml --cluster dgx-h100 --gpus 256 --mbs 1 -o " +
      out);
  ASSERT_EQ(torchtitan.exit_code, 0) << torchtitan.err;
  EXPECT_EQ(simulated(out)["plan"]["micro_batch"], 1) << "a flag beats the file";
}

// Out as launch lines and in again: the same plan.
TEST(Import, TakesWhatExportWrites) {
  const std::string scenario = "scenarios/llama3-70b-512-h100.json", out = new_file("again.json");
  const std::string flags =
      temporary_file("flags.txt", run_program("export megatron " + scenario).out + " --vocab-size 128256");
  const Outcome run = run_program("import megatron " + flags + " --cluster dgx-h100 --gpus 512 -o " + out);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json before = simulated(scenario), after = simulated(out);
  for (const char* key : {"tp", "pp", "vpp", "dp", "micro_batch", "global_batch", "seq", "zero", "precision",
                          "sequence_parallel", "overlap_grad_reduce", "recompute", "schedule"})
    EXPECT_EQ(before["plan"][key], after["plan"][key]) << key;
  const double parameters = before["model"]["parameters"];
  EXPECT_NEAR(after["model"]["parameters"].get<double>() / parameters, 1, 1e-3) << "the vocabulary is padded";
}

TEST(Import, SaysWhatIsMissingOrWrong) {
  const Outcome nowhere = run_program("import megatron tests/frameworks/data/gpt3_175b.sh --cluster selene");
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("-o"));
  const Outcome cluster = run_program("import torchtitan tests/frameworks/data/llama3_70b.toml --gpus 64");
  EXPECT_EQ(cluster.exit_code, 0);
  EXPECT_THAT(cluster.err, HasSubstr("no cluster is named"));
  const Outcome illegal = run_program(
      "import torchtitan tests/frameworks/data/llama3_70b.toml --cluster dgx-h100 --gpus 256 --tp 7");
  EXPECT_EQ(illegal.exit_code, 2);
  EXPECT_EQ(run_program("import megatron nowhere.sh -o x.json").exit_code, 2);
  const std::string own = temporary_file("own.args",
                                         "--num-layers 4 --hidden-size 256 --num-attention-heads 4 "
                                         "--max-position-embeddings 512 --of-mine 1\n");
  const std::string import = "import megatron " + own + " --model gpt2 -o " + new_file("own.json");
  EXPECT_THAT(run_program(import).err, HasSubstr("line 1: is no flag of Megatron-LM that is known"));
  EXPECT_EQ(run_program(import + " --ignore of-mine").exit_code, 0);
  EXPECT_EQ(run_program("import").exit_code, 2);
}

}  // namespace
}  // namespace rehearse
