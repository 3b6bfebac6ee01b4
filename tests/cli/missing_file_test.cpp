// Missing files, files of another kind, and unknown names: the message begins with the probable intention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kJob = "simulate --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 ";

std::string refusal(const std::string& arguments) {
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.exit_code, 2) << arguments << outcome.err;
  EXPECT_EQ(outcome.out, "") << arguments;
  return outcome.err;
}

TEST(MissingFile, SaysSoAndOffersItsNeighbours) {
  temporary_file("llama-mine.json", "{}");
  EXPECT_THAT(refusal("simulate %/lama-mine.json"),
              AllOf(HasSubstr("lama-mine.json: no such file"),
                    HasSubstr(in_scratch("nearest legal: %/llama-mine.json"))));
  EXPECT_THAT(refusal("compare %/llama-mine.jsn %/llama-mine.json"), HasSubstr("nearest legal: "));
  EXPECT_THAT(refusal("simulate %/none/a.json"), HasSubstr(in_scratch("there is no folder %/none")));
}

TEST(MissingFile, OffersWhatShipsUnderThatName) {
  EXPECT_THAT(refusal("simulate %/llama3-70b-512-h100.json"),
              HasSubstr("nearest legal: " SOURCE_DIR "/scenarios/llama3-70b-512-h100.json"));
  EXPECT_THAT(refusal("topo dgx-h100.json"),
              AllOf(HasSubstr("no such cluster file"), HasSubstr("nearest legal: dgx-h100\n")));
  EXPECT_THAT(refusal(kJob + "--model llama3-8b --profile %/h100-sxm.json"),
              HasSubstr("nearest legal: h100-sxm\n"));
}

TEST(MissingFile, IsAFolder) {
  EXPECT_THAT(refusal("simulate scenarios"),
              AllOf(HasSubstr("is a folder, not a file"), HasSubstr("scenarios/activation-offload.json")));
  EXPECT_THAT(refusal("topo topologies/"), HasSubstr("is a folder, not a cluster file"));
  EXPECT_THAT(refusal(kJob + "--model scenarios/models"), HasSubstr("is a folder, not a model file"));
}

TEST(MissingFile, OfARepositorySaysHowToGetIt) {
  const std::string said = refusal(kJob + "--model meta-llama/Llama-3.1-8B");
  EXPECT_THAT(said, HasSubstr("`hf download meta-llama/Llama-3.1-8B config.json --local-dir Llama-3.1-8B`"));
  EXPECT_THAT(said, HasSubstr("https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/config.json"));
  EXPECT_THAT(said, Not(HasSubstr("ships with the program")));
  EXPECT_THAT(refusal(kJob + "--model https://huggingface.co/google/gemma-2b"),
              HasSubstr("hf download google/gemma-2b config.json"));
}

TEST(MissingFile, OfARepositoryThatShipsIsNamed) {
  EXPECT_THAT(refusal(kJob + "--model Qwen/Qwen3-8B"),
              HasSubstr("nearest legal: --model qwen3-8b, which ships"));
  EXPECT_THAT(refusal(kJob + "--model meta-llama/Llama-3-8B-Instruct"),
              HasSubstr("--model llama3-8b, which ships"));
  EXPECT_THAT(refusal(kJob + "--model deepseek-ai/DeepSeek-V3-Base"),
              HasSubstr("--model deepseek-v3, which"));
  const std::string scenario =
      temporary_file("repository.json", R"({"model": "Qwen/Qwen3-8B", "cluster": "dgx-h100", "gpus": 8})");
  EXPECT_THAT(refusal("simulate " + scenario), HasSubstr("--model qwen3-8b, which ships"));
}

TEST(MissingFile, AFolderThatHoldsAConfigurationIsAModel) {
  const std::string prepare =
      "mkdir -p %/Mine-8B && cp scenarios/models/llama3-8b.json %/Mine-8B/config.json && ";
  for (const char* model : {"%/Mine-8B", "%/Mine-8B/", "%/Mine-8B/config.json"}) {
    const Outcome outcome = run_in_bash(prepare + "$R " + kJob + "--model " + model);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Mine-8B on dgx-h100")) << model;
  }
  const Outcome plain = run_in_bash(prepare + "cd %/ && $R " + kJob + "--model Mine-8B");
  EXPECT_THAT(plain.out, HasSubstr("Mine-8B on dgx-h100")) << plain.err;
}

TEST(WrongKind, IsNamedWithWhatReadsIt) {
  temporary_file("report.json", R"({"schema": "rehearse.report/1", "step_time_s": 1})");
  temporary_file("trace.json", R"({"traceEvents": []})");
  EXPECT_THAT(refusal("simulate %/report.json"),
              AllOf(HasSubstr("is a report of a run, not a scenario"), HasSubstr("rehearse compare ")));
  EXPECT_THAT(refusal("sweep %/trace.json"), HasSubstr("is a trace of a run, not a scenario"));
  EXPECT_THAT(
      refusal("export schedule topologies/dgx-h100.json"),
      AllOf(HasSubstr("is a cluster, not a scenario"), HasSubstr("--cluster topologies/dgx-h100.json")));
  EXPECT_THAT(refusal(kJob + "--model topologies/dgx-h100.json"),
              HasSubstr("is a cluster, not a Hugging Face"));
  EXPECT_THAT(
      refusal("topo scenarios/models/llama3-8b.json"),
      AllOf(HasSubstr("is a Hugging Face configuration of a model, not a cluster"), HasSubstr("--model ")));
  EXPECT_THAT(refusal("topo scenarios/llama3-70b-512-h100.json"),
              AllOf(HasSubstr("is a scenario, not a cluster"), HasSubstr("rehearse simulate ")));
  EXPECT_THAT(refusal(kJob + "--model llama3-8b --profile %/report.json"),
              HasSubstr("is a report of a run, not a profile"));
}

TEST(UnknownName, HasTheNearestFirstAndNoLongList) {
  const std::string model = refusal(kJob + "--model lama3-8b");
  EXPECT_THAT(model, AllOf(HasSubstr("no such model; `rehearse list models` names all "),
                           HasSubstr("nearest legal: llama3-8b"), Not(HasSubstr("mixtral"))));
  EXPECT_THAT(refusal("topo dgx"),
              AllOf(HasSubstr("nearest legal: dgx-2, "), HasSubstr("rehearse list clusters")));
  EXPECT_THAT(refusal("topo H100"), HasSubstr("nearest legal: "));
  EXPECT_THAT(refusal(kJob + "--model llama3-8b --profile h100sxm"),
              AllOf(HasSubstr("nearest legal: h100-sxm"), HasSubstr("rehearse list profiles")));
  EXPECT_THAT(refusal("explain bubbel"),
              AllOf(HasSubstr("`rehearse explain` lists all"), HasSubstr("nearest legal: bubble")));
  const std::string key = temporary_file(
      "key.json",
      R"({"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 8, "plan": {"overlap_p2": true}})");
  EXPECT_THAT(refusal("simulate " + key), AllOf(HasSubstr("is not a known key; known are overlap_p2p, "),
                                                HasSubstr(" more"), HasSubstr("nearest legal: overlap_p2p")));
}

TEST(EmptyValue, IsRefusedOfEveryOutput) {
  const std::string job = kJob + "--model llama3-8b", sweep = "sweep --model llama3-8b --cluster dgx-h100";
  const std::vector<std::string> commands = {job + " --trace=",
                                             job + " --svg \"\"",
                                             sweep + " --csv \"\"",
                                             sweep + " --csv=",
                                             sweep + " --jsonl \"\"",
                                             "init -o \"\"",
                                             "topo dgx-h100 --svg=",
                                             "validate --page \"\"",
                                             "export schedule scenarios/gpt-22b-32-a100.json -o \"\""};
  for (const std::string& arguments : commands)
    EXPECT_THAT(refusal(arguments), HasSubstr("the value is empty")) << arguments;
}

TEST(Topo, ReadsPipes) {
  EXPECT_THAT(run_in_bash("$R topo - < topologies/dgx-h100.json").out, HasSubstr("H100-SXM5-80GB"));
  EXPECT_THAT(run_in_bash("$R topo <(cat topologies/dgx-h100.json)").out, HasSubstr("stdin\n"));
  const std::string dump = temporary_file("dump.txt", "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n");
  const std::string named = run_program("topo " + dump + " --like dgx-h100").out;
  EXPECT_THAT(named, HasSubstr("node       2 GPUs"));
  for (const std::string& pipe : {"- < " + dump, "<(cat " + dump + ")"}) {
    const Outcome outcome = run_in_bash("$R topo " + pipe + " --like dgx-h100");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.substr(outcome.out.find('\n')), named.substr(named.find('\n'))) << pipe;
  }
}

// Under a terminal (of script(1)) a long simulation says that it goes on, and Ctrl-C ends it at once.
TEST(Simulate, ShowsThatItGoesOnAndEndsAtCtrlC) {
  if (run_in_bash("type script").exit_code != 0) GTEST_SKIP() << "script(1) is not installed";
  const std::string job =
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 8 --pp 2 --gbs 1000000 --jitter 0.01 "
      "--large";
  const Outcome outcome =
      run_in_bash("script -qefc \"timeout --preserve-status -s INT 4 $R " + job + "\" /dev/null");
  EXPECT_THAT(outcome.out, HasSubstr("simulating 1000000 microbatches on 2 pipeline ranks, 0:0"));
  EXPECT_EQ(outcome.exit_code, 130);
  const Outcome piped = run_in_bash("timeout --preserve-status -s INT 3 $R " + job + " 2>&1; echo rc $?");
  EXPECT_THAT(piped.out, HasSubstr("rc 130"));
  EXPECT_THAT(piped.out, Not(HasSubstr("simulating")));
}

}  // namespace
}  // namespace rehearse
