// Where output goes: never over what the run came from, nor over another output, and without a stderr too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "program.h"

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
