// However a rank is lost, those that are left end in bounded time, with the contract's exit code and a
// reason.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "figures.h"
#include "processes.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr double kTimeout_s = 2;         // --timeout
constexpr double kBound_s = 15;          // beyond it, for any end
constexpr double kPatience_s = 60;       // of the test
constexpr double kLongestBeginning = 2;  // seconds, into which a fault falls anywhere

// Two ranks that train until somebody ends them.
Words training(const Words& more = {}) {
  Words words = {REHEARSE,
                 "execute",
                 SOURCE_DIR "/scenarios/gpt-10m-2-cores.json",
                 "--seq",
                 "16",
                 "--mbs",
                 "1",
                 "--gbs",
                 "4",
                 "--timeout",
                 fmt::format("{}", kTimeout_s)};
  if (std::ranges::find(more, "--iterations") == more.end())
    words.insert(words.end(), {"--iterations", "100000"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words under_mpirun(int ranks, const Words& words) {
  Words all = {"mpirun", "--oversubscribe", "-n", std::to_string(ranks)};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

const Process::Variables kAsRoot = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};

bool has_mpirun() {
  static const bool found = std::system("command -v mpirun >/dev/null 2>&1") == 0;
  return found;
}

bool has_ended(pid_t process) {
  const std::string stat = contents(fmt::format("/proc/{}/stat", process));
  const std::size_t state = stat.rfind(") ");
  return state == std::string::npos || stat[state + 2] == 'Z';
}

// The processes that mpirun has started and that have not ended.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::istringstream list(contents(fmt::format("/proc/{0}/task/{0}/children", parent)));
  for (pid_t child = 0; list >> child;)
    if (!has_ended(child)) children.push_back(child);
  return children;
}

struct Fault {
  const char* name;
  int signal;
};

class ExecutionUnder : public testing::TestWithParam<Fault> {
 protected:
  Scratch folder_;
  Moments moments_;
};

// A rank at random, at any moment between its start and the middle of its training.
TEST_P(ExecutionUnder, LossOfAProcessThatTorchrunStartedEnds) {
  std::vector<double> seconds;
  for (int i = 0; i < times(GetParam().signal == SIGKILL ? 2 : 1, 20); ++i) {
    std::vector<Process> ranks = start_ranks(training(), 2, 2, folder_.file("log"));
    sleep_s(moments_.between(0, kLongestBeginning));
    const std::size_t victim = i % 2, other = 1 - victim;
    ranks[victim].send(GetParam().signal);
    const Stopwatch watch;
    EXPECT_EQ(ranks[other].wait(kPatience_s), 1);
    seconds.push_back(watch.seconds());
    EXPECT_THAT(ranks[other].said(), HasSubstr("rehearse: "));
  }
  figure(fmt::format("execute, torchrun, {}", GetParam().name), seconds, kTimeout_s + kBound_s);
}

TEST_P(ExecutionUnder, LossOfAProcessThatMpirunStartedEnds) {
  if (!has_mpirun()) GTEST_SKIP() << "no mpirun";
  std::vector<double> seconds;
  for (int i = 0; i < times(GetParam().signal == SIGKILL ? 2 : 1, 20); ++i) {
    Process launcher(under_mpirun(2, training()), kAsRoot, folder_.file("log"));
    while (children_of(launcher.id()).size() < 2) sleep_s(0.005);
    sleep_s(moments_.between(0, kLongestBeginning));
    const std::vector<pid_t> ranks = children_of(launcher.id());
    ASSERT_EQ(ranks.size(), 2U) << launcher.said();
    kill(ranks[static_cast<std::size_t>(i % 2)], GetParam().signal);
    const Stopwatch watch;
    while (launcher.wait(0.02) < 0 && watch.seconds() < kPatience_s) {
      // mpirun does not end while a rank is stopped; the test requires only that the other rank ends.
      const std::vector<pid_t> left = children_of(launcher.id());
      if (GetParam().signal == SIGSTOP && left.size() < 2) break;
    }
    seconds.push_back(watch.seconds());
    EXPECT_LE(watch.seconds(), kTimeout_s + kBound_s) << launcher.said();
    for (const pid_t rank : children_of(launcher.id())) kill(rank, SIGKILL);
  }
  figure(fmt::format("execute, mpirun, {}", GetParam().name), seconds, kTimeout_s + kBound_s);
}

INSTANTIATE_TEST_SUITE_P(Faults, ExecutionUnder,
                         testing::Values(Fault{"a rank is killed", SIGKILL},
                                         Fault{"a rank is stopped", SIGSTOP}),
                         [](const auto& fault) { return fault.param.signal == SIGKILL ? "Kill" : "Stop"; });

// So many starts, each of which must end by itself.
struct Start {
  std::string name;
  std::function<std::vector<Process>(const std::string& log)> start;
  std::vector<int> exit_codes;
  std::vector<std::string> said;  // one of them
};

void expect_ends(const Start& start, int count) {
  const Scratch folder;
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    std::vector<Process> processes = start.start(folder.file("log"));
    const Stopwatch watch;
    std::string said;
    for (Process& process : processes) {
      EXPECT_THAT(start.exit_codes, testing::Contains(process.wait(kPatience_s)))
          << start.name << process.said();
      said += process.said();
    }
    seconds.push_back(watch.seconds());
    bool found = false;
    for (const std::string& words : start.said) found |= said.find(words) != std::string::npos;
    EXPECT_TRUE(found) << start.name << ": " << said;
  }
  figure("execute, " + start.name, seconds, kTimeout_s + kBound_s);
}

std::vector<Process> alone(const Words& words, const std::string& log, const Process::Variables& environment,
                           const std::function<void()>& prepare = {}) {
  std::vector<Process> processes;
  processes.emplace_back(words, environment, log, prepare);
  return processes;
}

TEST(Execution, OfTheWrongNumberOfProcessesEnds) {
  const std::vector<std::string> said = {"started 3 processes"};
  expect_ends({"torchrun, wrong world size",
               [](const std::string& log) { return start_ranks(training(), 3, 3, log); },
               {2},
               said},
              times(1, 20));
  if (!has_mpirun()) return;
  expect_ends({"mpirun, wrong world size",
               [](const std::string& log) { return alone(under_mpirun(3, training()), log, kAsRoot); },
               {2},
               said},
              times(1, 20));
}

TEST(Execution, WithoutTheGpuItAsksForEnds) {
  const Words words = training({"--device", "cuda"});
  const Process::Variables no_gpu = {{"CUDA_VISIBLE_DEVICES", ""}};
  const std::vector<std::string> said = {"GPU", "CUDA", "cuda"};
  expect_ends(
      {"threads, no GPU", [&](const std::string& log) { return alone(words, log, no_gpu); }, {4}, said},
      times(1, 20));
  expect_ends(
      {"torchrun, no GPU", [&](const std::string& log) { return start_ranks(words, 2, 2, log); }, {4}, said},
      times(1, 20));
  if (!has_mpirun()) return;
  expect_ends({"mpirun, no GPU",
               [&](const std::string& log) { return alone(under_mpirun(2, words), log, kAsRoot); },
               {4},
               said},
              times(1, 20));
}

TEST(Execution, ThatAPeerNeverJoinsEnds) {
  const std::vector<std::string> said = {"did not come", "no answer", "127.0.0.1"};
  for (int present = 0; present < times(1, 2); ++present) {
    expect_ends(
        {fmt::format("torchrun, rank {} never starts", 1 - present),
         [&](const std::string& log) { return alone(training(), log, as_torchrun(present, 2, free_port())); },
         {1},
         said},
        times(1, 20));
  }
}

// The limit lies between the memory that the program needs to start and that of two ranks in training.
TEST(Execution, OutOfMemoryEnds) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more addresses";
  Moments moments;
  const auto limited = [&](double most_bytes) {
    const auto bytes = static_cast<rlim_t>(moments.between(160e6, most_bytes));
    return [bytes] {
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_AS, &limit);
    };
  };
  // A library may run out first, or the time limit.
  const std::vector<std::string> said = {"memory", "no thread can be started", "no op has ended",
                                         "shared object", "ended without a word"};
  expect_ends({"threads, out of memory",
               [&](const std::string& log) { return alone(training(), log, {}, limited(800e6)); },
               {1, 3},
               said},
              times(3, 20));
  expect_ends({"torchrun, out of memory",
               [&](const std::string& log) {
                 const int port = free_port();
                 std::vector<Process> ranks;
                 ranks.emplace_back(training(), as_torchrun(0, 2, port), log + "0");
                 ranks.emplace_back(training(), as_torchrun(1, 2, port), log + "1", limited(400e6));
                 return ranks;
               },
               {1, 3},
               said},
              times(2, 20));
}

TEST(Execution, ThatIsInterruptedEndsAndSaysSo) {
  Moments moments;
  for (const int signal : {SIGINT, SIGTERM}) {
    const Scratch folder;
    std::vector<double> seconds;
    for (int i = 0; i < times(2, 20); ++i) {
      Process run(training({"--trace", folder.file("trace.json")}), {}, folder.file("log"));
      run.await_handlers();
      sleep_s(moments.between(0, kLongestBeginning));
      run.send(signal);
      const Stopwatch watch;
      EXPECT_EQ(run.wait(kPatience_s), 130) << run.said();
      seconds.push_back(watch.seconds());
    }
    for (const std::string& name : folder.names()) EXPECT_THAT(name, AnyOf("log", "trace.json"));
    figure(fmt::format("execute, threads, {}", signal == SIGINT ? "Ctrl-C" : "SIGTERM"), seconds, kBound_s);
  }
}

}  // namespace
}  // namespace rehearse
