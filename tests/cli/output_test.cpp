// Output never overwrites an input of the run or another output, also without a stderr.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "program.h"
#include "scratch.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string content(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class OwnInput : public ::testing::TestWithParam<const char*> {};

// @ is the input, ~ a place that is free.
TEST_P(OwnInput, IsNotWrittenOver) {
  static const std::string scenario =
      R"({"model": "gpt2", "cluster": "dgx-h100", "gpus": 8, "plan": {"tp": 4, "pp": 2, "global_batch": 16,
          "seq": 1024}})";
  static const std::string script =
      "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --swiglu --vocab-size 32000 "
      "--max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 8 --tokenizer-type "
      "NullTokenizer";
  std::string arguments = GetParam();
  const std::string input = arguments.starts_with("import") ? script : scenario;
  const std::string file = temporary_file("own.json", input), other = temporary_file("free", "");
  for (const auto& [sign, name] : {std::pair{'@', file}, std::pair{'~', other}}) {
    for (std::size_t at = 0; (at = arguments.find(sign)) != std::string::npos;)
      arguments.replace(at, 1, name);
  }
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.exit_code, 2) << arguments << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::AnyOf(HasSubstr("own.json"), HasSubstr(other)));
  EXPECT_EQ(content(file), input);
}

INSTANTIATE_TEST_SUITE_P(Output, OwnInput,
                         ::testing::Values("simulate @ --trace @", "simulate @ --svg @",
                                           "simulate @ --html $(dirname @)/./own.json",
                                           "sweep @ --mbs 1,2 --engine reference --html @",
                                           "memory @ --svg @", "export megatron @ -o @",
                                           "import megatron @ --cluster dgx-h100 --gpus 8 -o @",
                                           "calibrate @ --device cpu --fresh -o @",
                                           "execute @ --predict --fresh --profile-out @",
                                           "sweep @ --mbs 1,2 --engine reference --csv ~ --svg ~",
                                           "simulate @ --svg ~ --trace ~"));

TEST(Output, ATraceIsNotWrittenOverByItsComparison) {
  const std::string trace = temporary_file("trace.json", "");
  const std::string run = "simulate --model gpt2 --cluster dgx-h100 --gpus 2 --tp 2 --gbs 4 --trace " + trace;
  ASSERT_EQ(run_program(run).exit_code, 0);
  const std::string before = content(trace);
  const Outcome outcome = run_program("compare " + trace + " " + trace + " --trace " + trace);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(content(trace), before);
}

TEST(Output, DevicesTakeTwo) {
  EXPECT_EQ(run_program("simulate --model gpt2 --cluster dgx-h100 --gpus 2 --tp 2 --gbs 4 --trace /dev/null "
                        "--svg /dev/null")
                .exit_code,
            0);
}

TEST(Output, WithoutAStderrTheExitCodeTells) {
  const std::pair<const char*, int> cases[] = {
      {"simulate %/nowhere.json", 2},
      {"simulat", 2},
      {"check --model gpt3-175b --cluster selene --gpus 64 --tp 8 --pp 1 --gbs 64", 3},
      {"simulate --model llama3-8b --cluster mi300x-8 --gpus 8 --tp 8 --gbs 8", 4},
      {"simulate --model gpt2 --cluster dgx-h100 --gpus 2 --tp 2 --svg %/none/p.svg", 1},
      {"check --model gpt2 --cluster dgx-h100 --gpus 2 --tp 2", 0}};
  for (const auto& [arguments, exit_code] : cases) {
    for (const std::string to : {"2>/dev/full", "2>&-"})
      EXPECT_EQ(run_program(std::string(arguments) + " >/dev/null " + to + "; exit $?").exit_code, exit_code)
          << arguments << to;
  }
}

constexpr const char* kTinyRun = "--model gpt2 --cluster dgx-h100 --gpus 2 --tp 2 --gbs 4 ";

// Standard output contains only the file.
TEST(StandardOutput, IsADashForEveryFile) {
  const std::string simulate = std::string("simulate ") + kTinyRun;
  const std::string store = " --store " + scratch().file("dash.db") + " ";
  const std::pair<std::string, const char*> cases[] = {
      {simulate + "--svg -", "<svg"},
      {simulate + "--html -", "<!DOCTYPE html>"},
      {simulate + "--trace -", "{"},
      {std::string("memory ") + kTinyRun + "--svg -", "<svg"},
      {"topo dgx-h100 --svg -", "<svg"},
      {"topo dgx-h100 --gpus 16 --export-simgrid -", "<?xml"},
      {std::string("sweep ") + kTinyRun + "--mbs 1,2 --svg -" + store, "<svg"},
      {std::string("sweep ") + kTinyRun + "--mbs 1,2 --resume --csv -" + store, "mbs,"},
      {std::string("export schedule ") + kTinyRun + "-o -", "0F0"},
      {"init -o -", "{"}};
  for (const auto& [arguments, begin] : cases) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << outcome.err;
    EXPECT_THAT(outcome.out, ::testing::StartsWith(begin)) << arguments;
    EXPECT_FALSE(std::filesystem::exists(std::string(SOURCE_DIR) + "/-")) << arguments;
  }
  EXPECT_THAT(run_program(simulate + "--svg -").err, HasSubstr("step"));
}

TEST(StandardOutput, TakesOneThing) {
  for (const char* arguments :
       {"simulate --svg - --html -", "simulate --json --trace -", "memory --json --svg -",
        "sweep --mbs 1,2 --csv - --jsonl -", "sweep --mbs 1,2 --csv --svg -"}) {
    const Outcome outcome = run_program(std::string(arguments) + " " + kTinyRun);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("standard output")) << arguments;
    EXPECT_THAT(outcome.out, IsEmpty()) << arguments;
  }
}

TEST(StandardOutput, HoldsNothingToGoOnWith) {
  const Outcome outcome = run_program(std::string("calibrate --device cpu -o - ") + kTinyRun);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("standard output"));
}

TEST(Output, GoesWhereALinkLeads) {
  const std::string svg = std::string("simulate ") + kTinyRun + "--svg ";
  for (const bool is_there : {true, false}) {
    const std::string name = is_there ? "there" : "absent";
    const std::string target = scratch().file(name + ".svg"), link = scratch().file(name + "-link");
    if (is_there) scratch().write(name + ".svg", "before");
    std::filesystem::create_symlink(name + ".svg", link);
    EXPECT_EQ(run_program(svg + link).exit_code, 0) << name;
    EXPECT_TRUE(std::filesystem::is_symlink(link)) << name;
    EXPECT_THAT(content(target), ::testing::StartsWith("<svg")) << name;
  }
  std::filesystem::create_symlink("loop", scratch().file("loop"));
  const Outcome loop = run_program(svg + scratch().file("loop"));
  EXPECT_EQ(loop.exit_code, 1);
  EXPECT_THAT(loop.err, HasSubstr("Too many levels of symbolic links"));
}

TEST(Output, KeepsTheModeOfAFile) {
  for (const int mode : {0600, 0400, 0664}) {
    const std::string file = temporary_file("mode.svg", "before");
    std::filesystem::permissions(file, std::filesystem::perms(mode));
    EXPECT_EQ(run_program(std::string("simulate ") + kTinyRun + "--svg " + file).exit_code, 0);
    EXPECT_THAT(content(file), ::testing::StartsWith("<svg"));
    EXPECT_EQ(static_cast<int>(std::filesystem::status(file).permissions()), mode);
    std::filesystem::remove(file);
  }
}

// An unset shell variable leaves these empty.
TEST(Output, OfNoNameIsRefused) {
  for (const char* empty : {"simulate --svg ''", "simulate --html ''", "simulate --profile ''", "simulate ''",
                            "sweep --mbs 1,2 --store ''", "sweep --mbs 1,2 --shard ''",
                            "sweep --mbs 1,2 --merge ''", "export schedule -o ''", "simulate --slow ''"}) {
    const Outcome outcome = run_program(std::string(empty) + " " + kTinyRun);
    EXPECT_EQ(outcome.exit_code, 2) << empty << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("empty")) << empty;
  }
}

TEST(Output, WhatIsSaidDoesNotLandInAFile) {
  const std::string svg = temporary_file("p.svg", "");
  const Outcome outcome =
      run_program("simulate --model gpt2 --cluster dgx-h100 --gpus 2 --tp 2 --gbs 4 --svg " + svg +
                  " >/dev/null 2>&-; exit $?");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(content(svg), ::testing::StartsWith("<"));
}

}  // namespace
}  // namespace rehearse
