// Importing from the command line: the scenario that comes out can be simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
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
  const Outcome run = run_program("simulate --json --allow-oom --engine reference " + scenario);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? Json::parse(run.out) : Json();
}

TEST(Import, WhatComesOutOfEachFrameworkCanBeSimulated) {
  const std::string out = new_file("imported.json");
  const Outcome megatron = run_program(
      "import megatron tests/frameworks/data/gpt3_175b.sh --cluster selene --gpus 1024 -o " + out);
  ASSERT_EQ(megatron.exit_code, 0) << megatron.err;
  EXPECT_THAT(megatron.err, HasSubstr("--rampup-batch-size is ignored"));
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

TEST(Import, NamesKeysThatTheNetworkDoesNotHave) {
  const std::string file = temporary_file(
      "nano.yaml",
      "parallelism: {dp: 8, tp: 1, pp: 1}\ntokens: {micro_batch_size: 1, sequence_length: 512}\n"
      "model: {model_config: {hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, vocab_size: "
      "512,\n"
      "  intermediate_size: 256, my_mixer: {kind: fast}, my_window: 128}}\n");
  const Outcome run = run_program("import " + file + " --cluster dgx-h100 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("unknown, and ignored with unknown effect: "
                                 "model.model_config.my_mixer.kind, model.model_config.my_window"));
  EXPECT_EQ(run_program("import " + file + " --cluster dgx-h100 --strict").exit_code, 2);
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
  const Outcome nowhere =
      run_program("import megatron tests/frameworks/data/gpt3_175b.sh --cluster selene --gpus 1024");
  ASSERT_EQ(nowhere.exit_code, 0) << nowhere.err;
  EXPECT_EQ(Json::parse(nowhere.out)["model"]["num_hidden_layers"], 96)
      << "without a file the model stands in the scenario";
  const Outcome cluster = run_program("import torchtitan tests/frameworks/data/llama3_70b.toml --gpus 64");
  EXPECT_EQ(cluster.exit_code, 0);
  EXPECT_THAT(cluster.err, HasSubstr("the cluster is not given"));
  const Outcome illegal = run_program(
      "import torchtitan tests/frameworks/data/llama3_70b.toml --cluster dgx-h100 --gpus 256 --tp 7");
  EXPECT_EQ(illegal.exit_code, 2);
  const std::string mx =
      temporary_file("mx.toml",
                     "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"quantize.linear.mx\"]\n"
                     "[quantize.linear.mx]\nrecipe_name = \"mxfp8_cublas\"\n[training]\nlocal_batch_size = "
                     "1\nseq_len = 8192\n");
  const Outcome blackwell = run_program("import " + mx + " --cluster dgx-h100 --gpus 8 -o %/x.json");
  EXPECT_EQ(blackwell.exit_code, 2);
  EXPECT_THAT(blackwell.err, HasSubstr(mx + ": /plan/fp8_scaling: MXFP8 needs Blackwell"))
      << "the file that says so, not the one that is not written";
  EXPECT_EQ(run_program("import megatron %/nowhere.sh -o %/x.json").exit_code, 2);
  const std::string own = temporary_file("own.args",
                                         "--num-layers 4 --hidden-size 256 --num-attention-heads 4 "
                                         "--max-position-embeddings 512 --of-mine 1\n");
  const std::string import = "import megatron " + own + " --model gpt2 -o " + new_file("own.json");
  EXPECT_THAT(run_program(import).err, HasSubstr("1 option is unknown to Megatron-LM"));
  const Outcome strict = run_program(import + " --strict");
  EXPECT_EQ(strict.exit_code, 2);
  EXPECT_THAT(strict.err, HasSubstr("line 1: --of-mine: is an unknown option"));
  EXPECT_EQ(run_program(import + " --strict --ignore of-mine").exit_code, 0);
  EXPECT_EQ(run_program("import").exit_code, 2);
}

TEST(Import, NamesTheFileAndItsKeyOfTheModel) {
  const std::string nano =
      temporary_file("nano.yaml",
                     "parallelism: {dp: 8, tp: 1, pp: 1}\ntokens: {micro_batch_size: 1}\n"
                     "model:\n  model_config: {num_hidden_layers: 2}\n");
  const Outcome outcome = run_program("import " + nano + " --cluster dgx-h100");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(nano + ": model.model_config.hidden_size"));
}

// The scenario contains the import's approximations, and every report repeats them.
TEST(Import, ReportsOfTheScenarioRepeatWhatWasApproximated) {
  const std::string flags = temporary_file("muon.args",
                                           "--num-layers 4 --hidden-size 256 --num-attention-heads 4 "
                                           "--max-position-embeddings 512 --seq-length 512 "
                                           "--global-batch-size 8 --bf16 --optimizer muon\n");
  const std::string out = new_file("muon.json");
  const Outcome run = run_program("import megatron " + flags + " --cluster dgx-h100 --gpus 8 -o " + out);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--optimizer is muon"));
  EXPECT_THAT(simulated(out)["warnings"].dump(), HasSubstr("--optimizer is muon"));
  EXPECT_THAT(run_program("check " + out).err, HasSubstr("--optimizer is muon"));
  const std::string bad =
      temporary_file("bad-notes.json", R"({"model": "gpt2", "cluster": "dgx-h100", "notes": 3})");
  EXPECT_THAT(run_program("simulate " + bad).err, HasSubstr("/notes: must be an array of texts"));
}

TEST(Import, TheCommandLineDecidesWhatTheTextLeavesOpen) {
  const std::string script = temporary_file(
      "open.sh",
      "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 4 --hidden-size 256 "
      "--num-attention-heads 4 --max-position-embeddings 512 --tensor-model-parallel-size ${1} "
      "--micro-batch-size 1 --global-batch-size 64 --seq-length 512 --bf16\n");
  const std::string import = "import megatron " + script + " --cluster dgx-h100 -o " + new_file("open.json");
  EXPECT_EQ(run_program(import).exit_code, 2);
  const Outcome run = run_program(import + " --tp 4");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run_program(import + " --tp 4 --gbs 65").exit_code, 2) << "its rules are checked";
}

TEST(Import, GlobalBatchFollowsFromAccumulationAndFlags) {
  const std::string config = temporary_file(
      "accumulation.json",
      R"({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 16, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 3}})");
  const std::string import = "import deepspeed " + config + " --model llama2-7b --cluster dgx-h100 --gpus 8 ";
  const Outcome run = run_program(import + "--mbs 2");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["plan"]["global_batch"], 2 * 16 * 8);
  EXPECT_THAT(run_program(import).err, HasSubstr("accumulate over 16 microbatches"));
}

// The kind is detected, words go to the script, and --json reports the role of each option.
TEST(Import, FindsOutTheKindAndClassifiesEachOption) {
  const std::string script = temporary_file(
      "words.sh",
      "#!/bin/bash\nif [ $SIZE = small ]; then L=4; else L=8; fi\n"
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers $L --hidden-size 256 --num-attention-heads 4 "
      "--max-position-embeddings 512 --seq-length 512 --micro-batch-size 1 --global-batch-size 64 --lr 1e-4 "
      "--tensor-model-parallel-size $1 --bf16 --use-sharp --my-own 1\n");
  const Outcome open = run_program("import " + script + " --cluster dgx-h100");
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, HasSubstr("SIZE=VALUE"));
  EXPECT_THAT(open.err, HasSubstr("VALUE1"));
  const Outcome run = run_program("import " + script + " SIZE=small 2 --cluster dgx-h100 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("is read as a script"));
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["kind"], "megatron");
  EXPECT_EQ(answer["scenario"]["model"]["num_hidden_layers"], 4);
  EXPECT_EQ(answer["scenario"]["plan"]["tp"], 2);
  std::map<std::string, std::string> classes;
  for (const Json& option : answer["options"]) classes[option["name"]] = option["class"];
  EXPECT_EQ(classes["--num-layers"], "used");
  EXPECT_EQ(classes["--lr"], "free");
  EXPECT_EQ(classes["--use-sharp"], "ignored");
  EXPECT_EQ(classes["--my-own"], "unknown");
}

TEST(Import, TakesTheVocabularyThatATokenizerDoesNotState) {
  const std::string flags =
      temporary_file("tokenizer.args",
                     "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --max-position-embeddings 512 "
                     "--seq-length 512 "
                     "--global-batch-size 8 --bf16 --tokenizer-type HuggingFaceTokenizer\n");
  const std::string import = "import " + flags + " --cluster dgx-h100 --gpus 8";
  EXPECT_THAT(run_program(import).err, HasSubstr("128256 words are assumed"));
  const Outcome run = run_program(import + " --vocab-size 1000");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["model"]["vocab_size"], 1024);
  EXPECT_EQ(run_program(import + " --model gpt2").exit_code, 0) << "the model names its own";
}

// Typed flags start from fusions and overlaps that Megatron-LM has only on request. The report states their
// effect. An import sets all of them, so it reports nothing.
TEST(Simulate, NamesDefaultsThatAreNotTheFrameworks) {
  const std::string typed =
      "simulate --json --allow-oom --engine reference --model mixtral-8x7b --cluster dgx-h100 --gpus 64 --tp "
      "1 --pp 4 "
      "--ep 8 "
      "--mbs 1 --gbs 128 --seq 4096 --zero 1 ";
  const Json report = Json::parse(run_program(typed).out);
  ASSERT_FALSE(report["assumed"].empty());
  bool found = false;
  for (const Json& each : report["assumed"]) {
    EXPECT_GT(std::abs(each["effect"].get<double>()), 0.02);
    EXPECT_NEAR(each["step_time_s"].get<double>(),
                report["step_time_s"].get<double>() * (1 + each["effect"].get<double>()), 1e-9);
    EXPECT_THAT(report["warnings"].dump(), HasSubstr(each["flag"].get<std::string>() + " on is assumed"));
    if (each["flag"] != "--moe-permute-fusion") continue;
    found = true;
    EXPECT_EQ(each["framework_default"], "off");
    const Json stated = Json::parse(run_program(typed + "--moe-permute-fusion off").out);
    EXPECT_NEAR(stated["step_time_s"].get<double>(), each["step_time_s"].get<double>(), 1e-6);
    for (const Json& other : stated["assumed"]) EXPECT_NE(other["flag"], each["flag"]) << "it is stated now";
  }
  EXPECT_TRUE(found) << report["assumed"];
  const std::string out = new_file("mixtral.json");
  ASSERT_EQ(
      run_program("import megatron tests/frameworks/data/mixtral_8x7b.args --cluster dgx-h100 --gpus 64 -o " +
                  out)
          .exit_code,
      0);
  EXPECT_TRUE(simulated(out)["assumed"].empty());
}

}  // namespace
}  // namespace rehearse
