// Users' mistakes: each gets a message with the rule, the place and the correction. The exit code is the
// promised one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct BadInput {
  const char* name;
  const char* arguments;
  int exit_code;
  const char* says;
};

const char kLlama[] = " --model llama3-70b --cluster dgx-h100 --gpus 512 --tp 8 --pp 4 --gbs 1024 ";

class Bad : public ::testing::TestWithParam<BadInput> {};

TEST_P(Bad, InputIsNamedWithItsRule) {
  std::string arguments = GetParam().arguments;
  if (const std::size_t at = arguments.find('@'); at != std::string::npos) arguments.replace(at, 1, kLlama);
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(in_scratch(GetParam().says)));
  EXPECT_THAT(outcome.out, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, Bad,
    ::testing::Values(
        BadInput{"NoVerb", "", 2, "--help"}, BadInput{"UnknownVerb", "simulat", 2, "did you mean simulate"},
        BadInput{"UnknownFlag", "simulate --pipline 4", 2, "--pipline"},
        BadInput{"NearFlag", "simulate --schedul 1f1b", 2, "did you mean --schedule?"},
        BadInput{"SlowLinkThatIsNot", "simulate @ --slow link=spine9:0.5", 2, "found \"spine9\""},
        BadInput{"TooFewStageNodes", "simulate @ --stage-nodes 2*dgx-h100", 2, "2 named, pp = 4"},
        BadInput{"StageNodesSplitByCost", "check @ --stage-nodes 4*dgx-h100 --layers-per-stage auto", 2,
                 "splits over equal GPUs only"},
        BadInput{"DaysWithoutFailures",
                 "goodput --gpus 8 --mtbf-hours 50000 --checkpoint-seconds 20 --restart-seconds 600", 2,
                 "between 10 and 20000 failures"},
        BadInput{"DaysOfCountlessFailures",
                 "goodput --gpus 1000000 --mtbf-hours 0.001 --checkpoint-seconds 2 --restart-seconds 6", 2,
                 "between 10 and 20000 failures"},
        BadInput{"GridInFp8OnTheCpu", "calibrate --grid --device cpu --precision fp8 -o %/bad.json", 2,
                 "the CPU has no fp8 GEMMs"},
        BadInput{"GridInFp8OnA100",
                 "calibrate --grid --device cuda --cluster dgx-a100 --precision fp8 -o %/bad.json", 2,
                 "states no fp8 peak"},
        BadInput{"GridOfUnknownPrecision", "calibrate --grid --precision int4 -o %/bad.json", 2,
                 "bf16, fp16, fp8, fp32"},
        BadInput{"FlagWithoutValue", "simulate --tp", 2, "--tp"},
        BadInput{"NotAnInteger", "simulate @ --vpp two", 2, "--vpp: must be an integer (found \"two\")"},
        BadInput{"OverflowingInteger", "simulate @ --mbs 99999999999999999999", 2,
                 "--mbs: must be an integer"},
        BadInput{"NegativeDegree", "simulate @ --vpp -2", 2, "--vpp: must be an integer from 1"},
        BadInput{"ZeroDegree", "simulate @ --vpp 0", 2, "--vpp: must be an integer from 1 to"},
        BadInput{"NoModel", "simulate --cluster dgx-h100", 2, "--model: is required"},
        BadInput{"UnknownModel", "simulate --model llama3-71b --cluster dgx-h100", 2,
                 "nearest legal: llama3-70b"},
        BadInput{"UnknownCluster", "simulate --model llama3-8b --cluster dgx-h10", 2,
                 "nearest legal: dgx-h100"},
        BadInput{"UnknownSchedule", "simulate @ --schedule 1f2b", 2, "nearest legal: 1f1b"},
        BadInput{"LayersOverStages",
                 "check --model llama3-70b --cluster dgx-h100 --gpus 512 --tp 8 --pp 16 --vpp 2 --gbs 1024",
                 2, "nearest legal: pp = 8, or vpp = 1 or 5\n"},
        BadInput{"GpusAndDegrees",
                 "check --model llama3-70b --cluster dgx-h100 --gpus 500 --tp 8 --pp 4 --gbs 1024", 2,
                 "gpus = 256 or 512"},
        BadInput{"BatchNotDivisible",
                 "check --model llama3-70b --cluster dgx-h100 --gpus 512 --tp 8 --pp 4 --gbs 1000", 2,
                 "nearest legal: gbs = 992 or 1008"},
        BadInput{"OneWrongDegree",
                 "check --model llama3-70b --cluster dgx-h100 --gpus 128 --tp 8 --pp 3 --gbs 64", 2,
                 "nearest legal: pp = 2 or 4\n"},
        BadInput{"BelowEveryDegree", "check --model llama3-8b --cluster dgx-h100 --tp -8", 2,
                 "--tp: must be an integer from 1 to 1048576 (found -8); nearest legal: 1"},
        BadInput{"FlagTwice", "simulate @ --tp 4", 2, "--tp: is given more than once (8, then 4)"},
        BadInput{"SetBesideItsFlag", "simulate @ --set plan.tp=4", 2, "--set: the field is given twice (plan.tp)"},
        BadInput{"SetWithoutAValue", "simulate @ --set plan.tp", 2, "--set: must be FIELD=VALUE"},
        BadInput{"SetOfAMisspeltKey", "simulate @ --set cluster.node.nics.bandwith=400Gbps", 2, "bandwidth"},
        BadInput{"SetOfNoSuchPart", "simulate @ --set cluster.nic.bandwidth=400Gbps", 2, "nic"},
        BadInput{"SetWithoutAUnit", "simulate @ --set cluster.node.nics.bandwidth=400", 2, "/node/nics/bandwidth"},
        BadInput{"FlagAndItsAlias",
                 "sweep --model gpt2 --cluster dgx-h100 --tp 1,2 "
                 "--tensor-model-parallel-size 4,8",
                 2, "--tp: is given more than once (1,2, then 4,8)"},
        BadInput{"ListOutsideASweep", "simulate --model gpt2 --cluster dgx-h100 --tp 4,8", 2,
                 "nearest legal: rehearse sweep ... --tp 4,8"},
        BadInput{"RangeByADash", "sweep --model gpt2 --cluster dgx-h100 --tp 1-8", 2,
                 "nearest legal: rehearse sweep ... --tp 1:8"},
        BadInput{"ListBySpaces", "sweep --model gpt2 --cluster dgx-h100 --tp \"1 2 4\"", 2,
                 "nearest legal: rehearse sweep ... --tp 1,2,4"},
        BadInput{"StepWithoutItsSign", "sweep --model gpt2 --cluster dgx-h100 --tp 1:9:1", 2,
                 "begins with + or * (found \"1:9:1\"); nearest legal: 1:9:+1"},
        BadInput{"SvgNamedPng", "simulate @ --svg %/x.png", 2, "--svg: writes svg, not png"},
        BadInput{"PngNamedSvg", "simulate @ --png %/x.svg", 2, "--png: writes png, not svg"},
        BadInput{"PageNamedJson", "sweep @ --html %/x.json", 2, "--html: writes html, not json"},
        BadInput{"ModelInAScenariosPlace", "simulate scenarios/models/llama3-8b.json --gpus 8", 2,
                 "nearest legal: --model scenarios/models/llama3-8b.json"},
        BadInput{"NodesForGpus", "simulate --model llama3-8b --cluster dgx-h100 --nodes 16", 2,
                 "--gpus 128 (16 nodes of 8 GPUs)"},
        BadInput{"NodesOfNoCluster", "simulate --model llama3-8b --nodes=16", 2,
                 "GPUs are counted, not nodes"},
        BadInput{"NothingForTopo", "topo", 2, "Try: rehearse topo --help"},
        BadInput{"NothingForGoodput", "goodput", 2, "Try: rehearse goodput --help"},
        BadInput{"UnknownFormat", "export foo", 2, "export takes one of schedule, "},
        BadInput{"NegativeLayers", "simulate @ --layers-per-stage=-1,33", 2,
                 "command line: --layers-per-stage: must be"},
        BadInput{"TurnedRound", "simulate --model \xe2\x80\xaexyz --cluster dgx-h100", 2, "\\xe2\\x80\\xae"},
        BadInput{"OnOff", "simulate @ --overlap-p2p yes", 2, "must be on or off"},
        BadInput{"Order", "simulate @ --order tp-dp-pp", 2, "must name tp, cp, ep, dp and pp once each"},
        BadInput{"LayerList", "simulate @ --layers-per-stage 20,20,20", 2, "3 entries"},
        BadInput{"BucketUnit", "simulate @ --bucket 160", 2, "must be a quantity with its unit"},
        BadInput{"DoesNotFit", "check --model gpt3-175b --cluster selene --gpus 64 --tp 8 --pp 1 --gbs 64", 3,
                 "does not fit in memory"},
        BadInput{"NoProfile", "simulate --model llama3-8b --cluster mi300x-8 --gpus 8 --tp 8 --gbs 8", 4,
                 "--profile"},
        BadInput{"NanHours",
                 "goodput --gpus 8 --mtbf-hours nan --checkpoint-seconds 20 --restart-seconds 600", 2,
                 "--mtbf-hours: must be a number from"},
        BadInput{"NanDays",
                 "goodput --gpus 8 --mtbf-hours 50 --checkpoint-seconds 20 --restart-seconds 6 --days nan", 2,
                 "--days: must be a number from"},
        BadInput{"NanRowTimeout", "sweep @ --mbs 1,2 --row-timeout nan", 2,
                 "--row-timeout: must be a number from"},
        BadInput{"NanTimeout", "execute @ --timeout nan", 2, "--timeout: must be a number from"},
        BadInput{"NanSeconds", "calibrate @ --device cpu --seconds nan -o %/bad.json", 2,
                 "--seconds: must be a number from"},
        BadInput{"NanCalibrateSeconds", "execute @ --predict --calibrate-seconds nan", 2,
                 "--calibrate-seconds: must be a number from"},
        BadInput{"EmptyGate", "compare %/a.json %/b.json --fail-above \"\"", 2, "--fail-above: the value is empty"},
        BadInput{"EmptyGateOfAPrediction", "execute @ --predict --fail-above \"\"", 2,
                 "--fail-above: the value is empty"},
        BadInput{"DaysBeyondAll",
                 "goodput --gpus 8 --mtbf-hours 100000 --checkpoint-seconds 20 --restart-seconds 600", 2,
                 "nearest legal: --mtbf-hours 70080"},
        BadInput{"JsonLinesToJson", "sweep scenarios/gpt-10m-2-cores.json --mbs 1,2 --jsonl a.json", 2,
                 "nearest legal: a.jsonl"},
        BadInput{"MissingScenario", "simulate %/nowhere.json", 2, "nowhere.json: no such file"},
        BadInput{"ScenarioIsAFolder", "simulate scenarios", 2, "is a folder, not a file"},
        BadInput{"RouteOutside", "topo selene --route 0 99999999", 2, "must name GPUs from 0 to 4479"},
        BadInput{"UnwritablePicture", "simulate @ --svg %/none/p.svg", 1, "cannot write %/none/p.svg"}),
    [](const auto& bad) { return bad.param.name; });

struct BadFile {
  const char* name;
  const char* text;
  const char* says;
};

class BadScenario : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadScenario, IsNamedWithFileAndPointer) {
  const std::string file = temporary_file(std::string(GetParam().name) + ".json", GetParam().text);
  const Outcome outcome = run_program("simulate " + file);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().says));
  EXPECT_THAT(outcome.err, HasSubstr(file));
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadScenario,
    ::testing::Values(
        BadFile{"Empty", "", "not valid JSON"},
        BadFile{"Truncated", R"({"model": "llama3-8b", )", "not valid JSON"},
        BadFile{"List", "[1, 2]", "must be a JSON object"},
        BadFile{"TypoInKey", R"({"model": "llama3-8b", "cluster": "dgx-h100", "plan": {"micro_bach": 2}})",
                "/plan/micro_bach: is not a known key"},
        BadFile{"PlanIsANumber", R"({"model": "llama3-8b", "cluster": "dgx-h100", "plan": 3})", "/plan"},
        BadFile{"TextForNumber", R"({"model": "llama3-8b", "cluster": "dgx-h100", "plan": {"tp": "8"}})",
                "/plan/tp: must be an integer"},
        BadFile{"NotANumber", R"({"model": "llama3-8b", "cluster": "dgx-h100", "plan": {"tp": NaN}})",
                "not valid JSON"},
        BadFile{"WrongSchema",
                R"({"schema": "rehearse.report/1", "model": "llama3-8b", "cluster": "dgx-h100"})",
                "is a report of a run, not a scenario"}),
    [](const auto& bad) { return bad.param.name; });

TEST(BadScenario, AModelFileThatIsMissingIsNamedBesideTheScenario) {
  const std::string file =
      temporary_file("lost.json", R"({"model": "missing/config.json", "cluster": "dgx-h100"})");
  const Outcome outcome = run_program("simulate " + file);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("missing/config.json: no such model file"));
}

TEST(BadScenario, HostileNestingEndsInAMessage) {
  const std::string file = temporary_file("deep.json", std::string(200000, '['));
  const Outcome outcome = run_program("simulate " + file);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("nests too deep"));
}

TEST(BadScenario, EveryMistakeIsListedAtOnceAndWhatFollowsFromItIsNot) {
  const Outcome outcome =
      run_program("check --model llama3-70b --cluster dgx-h100 --gpus 512 --tp 3 --pp 4 --gbs 1024 --zero 3");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("attention heads"));
  EXPECT_THAT(outcome.err, HasSubstr("cannot combine ZeRO-2 or ZeRO-3 with pipeline parallelism"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("hidden size")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("terminate")));
}

// A build with CUDA speaks of the GPU or of its profile instead.
TEST(Device, ThatIsMissingIsNamedBeforeWhatItWouldNeed) {
  const Outcome outcome = run_program(
      "execute --model gpt-10m --cluster cpu-node --gpus 1 --gbs 8 --device cuda --precision bf16");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, Not(HasSubstr("states no peak")));
}

TEST(Flags, TakeThousandsOfTwo) {
  const Outcome outcome =
      run_program("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --seq 8k --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"seq\": 8192"));
}

TEST(Flags, NameSchedulesAsOthersDo) {
  const std::string job =
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 4 --pp 4 --gbs 16 --seq 1024 ";
  for (const auto& [given, run] : {std::pair{"interleaved --vpp 2", "interleaved-1f1b"},
                                   {"zb1p", "zb-h1"},
                                   {"1F1B", "1f1b"},
                                   {"GPipe", "gpipe"},
                                   {"DualPipeV", "dualpipe-v"}}) {
    const Outcome outcome = run_program(job + "--schedule " + given);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(run)) << given;
  }
  EXPECT_THAT(run_program(job + "--schedule zb1p").out, HasSubstr("schedule zb1p is run as zb-h1"));
}

TEST(Flags, OfSizesThatNobodyMeasuredAreWarnedOfFirst) {
  const Outcome outcome = run_program(
      "simulate --model llama3-70b --cluster dgx-h100 --gpus 128 --tp 8 --pp 4 --gbs 64 --seq 100000000 "
      "--allow-oom");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::size_t warned = outcome.out.find("of the kernel time is extrapolated");
  EXPECT_LT(warned, outcome.out.find("step time"));
}

}  // namespace
}  // namespace rehearse
