// Impossible sizes and numbers, and invalid files. The program names the error within a second and in bounded
// memory, and ends with exit code 2.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sanitized.h"
#include "scratch.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using ::testing::HasSubstr;
using ::testing::Not;

// Sanitizers multiply both; those builds do not test speed or size.
constexpr unsigned kMaxSeconds = kSanitized ? 20 : 2;  // a slow machine takes one for the largest
constexpr long kMaxKilobytes = kSanitized ? 4'000'000 : 512'000;

std::string file(const std::string& name, const std::string& text) {
  return scratch().write(name, text);
}

struct Outcome {
  int exit_code = -1;  // -1: killed, by a signal of its own or because it did not end
  double processor_s = 0;
  long kilobytes = 0;
  std::string said;
};

// The limit is on processor seconds, as other processes share the machine. A waiting process is killed later.
Outcome run(const Words& arguments) {
  const std::string out = scratch().file("said");
  const pid_t child = fork();
  if (child == 0) {
    const int said = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(said, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    const rlimit seconds = {kMaxSeconds + 1, kMaxSeconds + 1};
    setrlimit(RLIMIT_CPU, &seconds);
    alarm(10 + 10 * kMaxSeconds);
    std::vector<char*> words = {const_cast<char*>(REHEARSE)};
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(REHEARSE, words.data());
    _exit(127);
  }
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  std::stringstream said;
  said << std::ifstream(out, std::ios::binary).rdbuf();
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, seconds(usage.ru_utime) + seconds(usage.ru_stime),
          usage.ru_maxrss, said.str()};
}

// One message of few lines, which speaks for itself, and nothing of the program's inside.
void expect_refused(const Words& arguments, const std::string& says) {
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.said.substr(0, 2000);
  EXPECT_LE(outcome.processor_s, kMaxSeconds);
  EXPECT_LE(outcome.kilobytes, kMaxKilobytes);
  EXPECT_THAT(outcome.said.substr(0, 4000), HasSubstr(says));
  EXPECT_LE(outcome.said.size(), 8000U);
  for (const char* inside : {"terminate", "what()", "json.exception", "bad_alloc", "std::"})
    EXPECT_THAT(outcome.said.substr(0, 4000), Not(HasSubstr(inside)));
}

const Words kBase = {"check", "--model", "llama3-8b", "--cluster", "dgx-h100", "--tp", "8"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct HostileFlags {
  const char* name;
  Words flags;
  const char* says;
};

std::ostream& operator<<(std::ostream& out, const HostileFlags& hostile) {
  return out << hostile.name;
}

class Flags : public ::testing::TestWithParam<HostileFlags> {};

TEST_P(Flags, AreRefused) {
  Words words = {kBase.front()};
  for (std::size_t i = 1; i < kBase.size(); i += 2)
    if (std::ranges::find(GetParam().flags, kBase[i]) == GetParam().flags.end())
      words.insert(words.end(), {kBase[i], kBase[i + 1]});
  expect_refused(with(words, GetParam().flags), GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, Flags,
    ::testing::Values(
        HostileFlags{"ATrillionRanks", {"--gpus", "1000000000000"}, "--gpus: must be an integer from 1"},
        HostileFlags{"RanksBeyondIntegers", {"--gpus", "2147483648"}, "--gpus: must be an integer from 1"},
        HostileFlags{"TwoBillionRanks", {"--gpus", "2147483640"}, "--gpus: must be an integer from 1 to"},
        HostileFlags{"ProductOfDegreesBeyondIntegers", {"--tp", "2147483647", "--dp", "2147483647"}, "--tp"},
        HostileFlags{"ABillionStages", {"--pp", "1000000000"}, "--pp"},
        HostileFlags{"ABillionChunks", {"--vpp", "1000000000", "--pp", "2"}, "--vpp"},
        HostileFlags{"ATrillionSequences", {"--gbs", "1000000000000"}, "--gbs: must be an integer from 1 to"},
        HostileFlags{"ABillionMicrobatches", {"--gbs", "1000000000"}, "a schedule holds at most"},
        HostileFlags{"BatchFarFromAMultiple",
                     {"--mbs", "99999", "--dp", "64000", "--gbs", "7"},
                     "the global batch must be a multiple of micro batch x dp"},
        HostileFlags{"GpusFarFromAMultiple",
                     {"--gpus", "8", "--tp", "32749", "--pp", "32749"},
                     "tp must divide the attention heads"},
        HostileFlags{"ATrillionTokens", {"--seq", "1000000000000"}, "--seq: must be an integer from 1 to"},
        HostileFlags{"NegativeBatch", {"--gbs", "-1"}, "--gbs: must be an integer from 1"},
        HostileFlags{"BeyondSixtyFourBits", {"--gbs", "9223372036854775808"}, "--gbs: must be an integer"},
        HostileFlags{"NotANumber", {"--jitter", "nan"}, "--jitter: must be a number"},
        HostileFlags{"InfiniteJitter", {"--jitter", "inf"}, "--jitter: must be a number"},
        HostileFlags{"HugeNumber", {"--clip-grad", "1e308"}, "--clip-grad: must be a number from 0"},
        HostileFlags{"NegativeImbalance", {"--moe-imbalance", "-1e308"}, "--moe-imbalance: must be a number"},
        HostileFlags{"BucketBeyondNumbers", {"--bucket", "1e308TB"}, "--bucket: must be a quantity"},
        HostileFlags{"BucketOfNothing", {"--bucket", "0"}, "--bucket: must be from 1 B to 1 PB"},
        HostileFlags{"RankThatIsSlowBeyondAll", {"--slow", "rank=99999999999:0.5"}, "slow"},
        HostileFlags{"SpeedThatIsNoNumber", {"--slow", "rank=0:nan"}, "--slow"},
        HostileFlags{
            "LayersOfAMillionStages", {"--pipeline-model-parallel-layout", "Et*1000000|tL"}, "is too long"},
        HostileFlags{
            "LayoutOfLayouts",
            {"--pipeline-model-parallel-layout", "E((((((t*999999)*999999)*999999)*999999)*999999)*999999)L"},
            "is too long"},
        HostileFlags{"LayoutOfNothingRepeated",
                     {"--pipeline-model-parallel-layout", "E(((( *999999)*999999)*999999)*999999)x"},
                     "may contain only E, t, m, L"},
        HostileFlags{"TextThatIsNoText", {"--model", "\xff\xfe"}, "must be text in UTF-8"},
        HostileFlags{"NameThatSteersATerminal", {"--model", "\x1b[2J"}, "\\x1b[2J"},
        HostileFlags{"NameOfAMegabyte", {"--model", std::string(100'000, 'a')}, " ... "}),
    [](const auto& hostile) { return hostile.param.name; });

TEST(Sweep, WithAFieldAtAHugeIndexIsRefused) {
  expect_refused({"sweep", "--model", "llama3-8b", "--cluster", "dgx-h100", "--set",
                  "plan.layers_per_stage.9999999999=1"},
                 "is no place in a scenario");
}

TEST(Sweep, OfABillionValuesIsRefused) {
  expect_refused({"sweep", "--model", "llama3-8b", "--cluster", "dgx-h100", "--mbs", "1:1000000000"},
                 "at most 100000 values");
}

TEST(Sweep, OfAHundredMillionRowsIsRefusedWithItsCount) {
  expect_refused({"sweep", "--model", "llama3-8b", "--cluster", "dgx-h100", "--seq", "1:1000", "--mbs",
                  "1:1000", "--gbs", "1:100"},
                 "100000000 rows");
}

const Words kMillion = {"--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "8",     "--pp",
                        "8",       "--gbs",     "1000000",   "--mbs",    "1",      "--seq", "2048"};

TEST(Million, MicrobatchesOrGpusTakeLittleTimeAndMemory) {
  for (const Words& words : {with({"check"}, kMillion), with({"memory"}, kMillion),
                             with({"simulate"}, kMillion), Words{"topo", "dgx-h100", "--gpus", "1000000"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 0) << words.front() << ": " << outcome.said.substr(0, 2000);
    EXPECT_LE(outcome.processor_s, kMaxSeconds) << words.front();
    EXPECT_LE(outcome.kilobytes, kSanitized ? kMaxKilobytes : 200'000) << words.front();
  }
  expect_refused(with(with({"simulate"}, kMillion), {"--trace", scratch().file("trace.json")}),
                 "1000000 microbatches x 44 ops");
}

std::string scenario(const std::string& plan) {
  return R"({"model": "llama3-8b", "cluster": "dgx-h100", "plan": {)" + plan + "}}";
}

TEST(Scenario, WithHostileNumbersIsRefused) {
  for (const char* number :
       {"1000000000000", "-1", "1e308", "-1e308", "18446744073709551615", "1.5", "1e999", "NaN"})
    for (const char* key : {"tp", "pp", "global_batch", "seq"}) {
      SCOPED_TRACE(std::string(key) + " " + number);
      expect_refused({"check", file("numbers.json", scenario(fmt::format("\"{}\": {}", key, number)))},
                     "numbers.json");
    }
}

TEST(Model, OfABillionLayersIsRefused) {
  expect_refused(
      {"check", "--cluster", "dgx-h100", "--model",
       file("layers.json", R"({"model_type": "gpt2", "n_layer": 1000000000, "n_embd": 64, "n_head": 4,
                                          "vocab_size": 1000, "n_positions": 128})")},
      "/n_layer: must be an integer from 1 to");
}

TEST(Cluster, WithoutBandwidthIsRefused) {
  for (const char* rate : {"0", "0GB/s", "-1GB/s", "1e308GB/s", "nanGB/s", "infGB/s"}) {
    SCOPED_TRACE(rate);
    expect_refused(
        {"topo", file("cluster.json", std::string(R"({"schema": "rehearse.cluster/1", "like": "dgx-h100",
        "source": "none", "node": {"gpu_link": {"bandwidth": ")") +
                                          rate + "\"}}}")},
        "/node/gpu_link/bandwidth");
  }
}

TEST(Cluster, LikeItselfIsRefused) {
  const fs::path path = scratch().file("itself.json");
  file("itself.json",
       R"({"schema": "rehearse.cluster/1", "source": "none", "like": ")" + path.string() + "\"}");
  expect_refused({"topo", path}, "may lead through 4 clusters at most");
}

TEST(Topology, WhoseDevicesHoldThemselvesIsRefused) {
  expect_refused({"topo", file("cycle.xml", R"(<system version="1"><cpu arch="x86_64">
      <pci busid="a" link_speed="16 GT/s" link_width="16"><pci busid="a" link_speed="16 GT/s" link_width="16">
      </pci></pci></cpu></system>)")},
                 "names a PCI device twice");
}

TEST(Topology, OfAMillionCpusIsRefused) {
  std::string xml = "<system>";
  for (int i = 0; i < 1'000'000; ++i) xml += "<cpu/>";
  expect_refused({"topo", file("cpus.xml", xml + "</system>")}, "has more than 64 CPUs");
}

TEST(Topology, OfEndlessDigitsIsRefused) {
  expect_refused({"topo", file("digits.txt", "GPU0 mlx" + std::string(5'000'000, '1') + "\n")}, "digits.txt");
}

TEST(Script, WhoseVariablesDoubleEachOtherIsRefused) {
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 64; ++i) text += "A=$A$A\n";
  expect_refused(
      {"import", "megatron", file("doubling.sh", text + "--num-layers $A\n"), "--cluster", "dgx-h100"},
      "with its variables written out");
}

TEST(Json, ThatNestsOrHoldsWithoutEndIsRefused) {
  std::string keys = "{", values = "[0";
  for (int i = 0; i < 400'000; ++i) keys += fmt::format("\"{}\":0,", i);
  for (int i = 0; i < 3'000'000; ++i) values += ",0";
  expect_refused({"check", file("deep.json", std::string(1'000'000, '['))}, "nests too deep");
  expect_refused({"check", file("keys.json", keys + "\"a\":0}")}, "too many values");
  expect_refused({"check", file("values.json", values + "]")}, "that of 1000000 values");
}

// Each level holds the one below nine times.
TEST(Yaml, ThatRepeatsWhatRepeatsIsRefused) {
  const Words import = {"import",   file("bomb.yaml", ""), "--cluster", "dgx-h100", "--gpus", "8", "--model",
                        "llama3-8b"};
  const std::string head = "stage: sft\nmodel_name_or_path: x/y\n";
  std::string merges = head + "a0: &a0 {x: 1}\n", lists = head + "a0: &a0 [1]\n", products = head + "a0: 1\n";
  for (int i = 1; i < 24; ++i) {
    std::string nine;
    for (int n = 0; n < 9; ++n) nine += fmt::format("{}*a{}", n > 0 ? "," : "", i - 1);
    merges += fmt::format("a{0}: &a{0}\n  <<: [{1}]\n", i, nine);
    lists += fmt::format("a{0}: &a{0} [{1}]\n", i, nine);
    products += fmt::format("a{0}: \"${{multiply:${{a{1}}},${{a{1}}}}}\"\n", i, i - 1);
  }
  for (const std::string& text : {merges, lists, products}) {
    file("bomb.yaml", text);
    expect_refused(import, "bomb.yaml");
  }
  file("bomb.yaml", merges);
  expect_refused(import, "holds too many values, with aliases and merges written out");
  file("bomb.yaml", head + "a: " + std::string(100'000, '['));
  expect_refused(import, "nests too deep");
}

TEST(Toml, ThatNestsWithoutEndIsRefused) {
  const Words import = {"import", "torchtitan", file("deep.toml", ""), "--cluster", "dgx-h100",
                        "--gpus", "64"};
  const std::string head = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n";
  std::string dots = "a", inlined = "a", quoted = "a";
  for (int i = 0; i < 20'000; ++i) dots += ".a";
  for (int i = 0; i < 20'000; ++i) quoted += " . 'b'";
  for (int i = 0; i < 200; ++i) inlined += " = {a" + dots.substr(0, 400);
  for (const std::string& text :
       {head + dots + " = 1\n", head + quoted + " = 1\n", head + inlined,
        head + "a = " + std::string(100'000, '['), "[" + dots + "]\n", "x = {" + dots + " = 1}\n"}) {
    file("deep.toml", text);
    expect_refused(import, "nests too deep");
  }
}

// The arguments for each reader of a file.
struct FileReader {
  const char* name;
  Words before, after;
  const char* suffix;
};

const std::vector<FileReader> kReaders = {
    {"scenario", {"check"}, {}, ".json"},
    {"model", {"check", "--cluster", "dgx-h100", "--model"}, {}, ".json"},
    {"cluster", {"topo"}, {}, ".json"},
    {"profile", with(kBase, {"--profile"}), {}, ".json"},
    {"nccl log", {"calibrate", "import", "--cluster", "dgx-h100", "-o", "/dev/null"}, {}, ".log"},
    {"nccl json", {"calibrate", "import", "--cluster", "dgx-h100", "-o", "/dev/null"}, {}, ".json"},
    {"nccl topology", {"topo"}, {}, ".xml"},
    {"nvidia-smi", {"topo"}, {}, ".txt"},
    {"deepspeed", {"import", "deepspeed"}, {"--cluster", "dgx-h100"}, ".json"},
    {"torchtitan", {"import", "torchtitan"}, {"--cluster", "dgx-h100"}, ".toml"},
    {"megatron", {"import", "megatron"}, {"--cluster", "dgx-h100"}, ".sh"},
    {"schedule", with(kBase, {"--schedule"}), {}, ".csv"},
    {"published runs", {"validate"}, {}, ".json"},
    {"report", {"compare"}, {"also.json"}, ".json"},
    {"training log", {"compare", SOURCE_DIR "/tests/fuzz/corpus/report/report.json", "--log"}, {}, ".log"}};

std::ostream& operator<<(std::ostream& out, const FileReader& reader) {
  return out << reader.name;
}

class Reader : public ::testing::TestWithParam<FileReader> {
 protected:
  void expect(const std::string& path, const std::string& says) {
    expect_refused(with(with(GetParam().before, {path}), GetParam().after), says);
  }
  std::string place(const std::string& name) const { return scratch().file(name + GetParam().suffix); }
};

TEST_P(Reader, RefusesAPipeThatNobodyWritesTo) {
  const std::string path = place("pipe");
  mkfifo(path.c_str(), 0600);
  expect(path, "pipe");
}

TEST_P(Reader, RefusesAFolder) {
  const std::string path = place("folder");
  fs::create_directory(path);
  expect(path, "folder");
}

TEST_P(Reader, RefusesADeviceWithoutEnd) {
  const std::string path = place("zero");
  fs::remove(path);
  fs::create_symlink("/dev/zero", path);
  expect(path, "zero");
}

TEST_P(Reader, RefusesALineOfAHundredMegabytes) {
  const std::string path = place("line");
  file(fs::path(path).filename(), std::string(100'000'000, '1'));
  expect(path, "line");
  fs::remove(path);
}

TEST_P(Reader, RefusesALineOfFifteenMegabytes) {
  const std::string path = place("line");
  file(fs::path(path).filename(), "\"" + std::string(15'000'000, 'a') + "\"");
  expect(path, "line");
}

TEST_P(Reader, RefusesZeroBytes) {
  const std::string path = place("zeros");
  file(fs::path(path).filename(), std::string(100'000, '\0'));
  expect(path, "zeros");
}

TEST_P(Reader, RefusesWhatIsNoText) {
  const std::string path = place("bytes");
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += static_cast<char>(128 + i * 37 % 128);
  file(fs::path(path).filename(), bytes);
  expect(path, "bytes");
}

TEST_P(Reader, RefusesNothing) {
  if (std::string(GetParam().name) == "torchtitan") return;  // an empty file leaves every default
  const std::string path = place("empty");
  file(fs::path(path).filename(), "");
  expect(path, "empty");
}

INSTANTIATE_TEST_SUITE_P(Hostile, Reader, ::testing::ValuesIn(kReaders), [](const auto& reader) {
  std::string name = reader.param.name;
  std::erase_if(name, [](unsigned char letter) { return std::isalnum(letter) == 0; });
  return name;
});

}  // namespace
}  // namespace rehearse
