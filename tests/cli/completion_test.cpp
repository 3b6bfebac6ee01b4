// Completion, asked as bash asks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Bash's candidates for the last word. `words` are split as bash does, with double quotes for empty ones.
std::vector<std::string> offered(const std::string& words) {
  const Outcome outcome = run_in_bash(
      "source <($R completion bash); complete -p rehearse | grep -q -e \"-F _rehearse\" || exit 9; "
      "COMP_WORDS=($R " +
      words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rehearse; [ ${#COMPREPLY[@]} -eq 0 ] || printf \"%s\\n\" "
      "\"${COMPREPLY[@]}\"");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream in(outcome.out);
  std::vector<std::string> found;
  for (std::string line; std::getline(in, line);) found.push_back(line);
  return found;
}

TEST(Completion, OffersVerbsAndFlags) {
  EXPECT_THAT(offered("\"\""), IsSupersetOf({"simulate", "list", "help", "completion"}));
  EXPECT_THAT(offered("si"), ElementsAre("simulate"));
  EXPECT_THAT(offered("simulate --overlap-gr"), ElementsAre("--overlap-grad-reduce"));
  EXPECT_THAT(offered("simulate --"), IsSupersetOf({"--model", "--trace", "--json"}));
  EXPECT_THAT(offered("topo --"), Not(Contains("--tp")));
}

TEST(Completion, OffersNamesOfModelsClustersProfilesSchedulesAndFrameworks) {
  EXPECT_THAT(offered("simulate --model llama3-"), UnorderedElementsAre("llama3-8b", "llama3-70b"));
  EXPECT_THAT(offered("simulate --tp 8 --cluster dgx-h"), UnorderedElementsAre("dgx-h100", "dgx-h200"));
  EXPECT_THAT(offered("plan --profile h100-sxm"), UnorderedElementsAre("h100-sxm", "h100-sxm-measured"));
  EXPECT_THAT(offered("sweep --schedule zb"), UnorderedElementsAre("zb-h1", "zb-h2", "zb-v"));
  EXPECT_THAT(offered("memory --framework fsdp"), UnorderedElementsAre("fsdp", "fsdp1"));
  EXPECT_THAT(offered("topo dgx-h1"), ElementsAre("dgx-h100"));
  EXPECT_THAT(offered("calibrate show cpu-"), UnorderedElementsAre("cpu-epyc-turin", "cpu-generic"));
}

TEST(Completion, OffersValuesTopicsAndKinds) {
  EXPECT_THAT(offered("simulate --precision fp"), UnorderedElementsAre("fp16", "fp8", "fp4", "fp32"));
  EXPECT_THAT(offered("simulate --overlap-p2p \"\""), UnorderedElementsAre("on", "off"));
  EXPECT_THAT(offered("simulate --color a"), UnorderedElementsAre("auto", "always"));
  EXPECT_THAT(offered("explain me"), UnorderedElementsAre("messages", "memory"));
  EXPECT_THAT(offered("import \"\""),
              UnorderedElementsAre("megatron", "megatron-bridge", "nemo", "nemo-2", "olmo-core", "primus",
                                   "flagscale", "ms-swift", "deepspeed", "accelerate", "nanotron", "trainer",
                                   "llm-foundry", "maxtext", "verl", "torchtitan"));
  EXPECT_THAT(offered("import megatron --ign"), ElementsAre("--ignore"));
  EXPECT_THAT(offered("list \"\""),
              UnorderedElementsAre("models", "clusters", "profiles", "schedules", "frameworks"));
  EXPECT_THAT(offered("completion \"\""), UnorderedElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(offered("help top"), ElementsAre("topo"));
}

// Bash splits "--model=x" into three words and puts the candidates after the sign.
TEST(Completion, OffersValuesBehindASign) {
  EXPECT_THAT(offered("simulate --model = gpt-22"), ElementsAre("gpt-22b"));
  EXPECT_THAT(offered("simulate --model ="), Contains("gpt-22b"));
  EXPECT_THAT(offered("simulate --model = gpt-22b --schedule = gpi"), ElementsAre("gpipe"));
  const Outcome whole = run_program("completion words -- simulate --model=gpt-22");  // as zsh and fish ask
  EXPECT_THAT(whole.out, StartsWith("--model=gpt-22b\t"));
  EXPECT_THAT(offered("sweep --schedule gpipe,1f"), ElementsAre("gpipe,1f1b"));
}

TEST(Completion, LeavesFilesToTheShell) {
  EXPECT_THAT(offered("simulate \"\""), IsEmpty());
  EXPECT_THAT(offered("simulate --trace \"\""), IsEmpty());
  EXPECT_THAT(offered("simulate --model scenarios/mo"), IsEmpty());
}

TEST(Completion, KnowsTheNamesOfTheDataThatIsUsed) {
  EXPECT_THAT(
      run_in_bash("mkdir -p %/data/topologies && cp topologies/dgx-2.json %/data/topologies/mine.json && "
                  "REHEARSE_DATA=%/data $R completion words -- topo mi")
          .out,
      StartsWith("mine\t"));
}

}  // namespace
}  // namespace rehearse
