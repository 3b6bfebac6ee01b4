// Ranks of different jobs end with the difference; foreign connections to their ports change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>

#include "processes.h"
#include "program.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Flags = std::vector<std::string>;

constexpr int kRefused = 2;
constexpr double kPatience_s = 60;  // of the test

Flags two_ranks(const Flags& more) {
  Flags command = {REHEARSE, "execute", SOURCE_DIR "/scenarios/gpt-10m-2-cores.json", "--seq", "16"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

// One rank of two, with `extra` in its environment over that of torchrun.
Process rank_of_two(int rank, int port, const Flags& more, const Process::Variables& extra = {},
                    const std::function<void()>& prepare = {}) {
  Process::Variables environment = as_torchrun(rank, 2, port);
  environment.insert(environment.end(), extra.begin(), extra.end());
  static int count = 0;
  return {two_ranks(more), environment, temporary_file("rank" + std::to_string(count++), ""), prepare};
}

struct Difference {
  const char* name;
  Flags first, second;  // of rank 0 and rank 1
  std::string said;
};

class DifferentProcesses : public testing::TestWithParam<Difference> {};

TEST_P(DifferentProcesses, AreRefusedWithTheDifference) {
  const int port = free_port();
  std::list<Process> ranks;
  ranks.push_back(rank_of_two(0, port, GetParam().first));
  ranks.push_back(rank_of_two(1, port, GetParam().second));
  for (Process& rank : ranks) {
    EXPECT_EQ(rank.wait(kPatience_s), kRefused) << rank.said();
    EXPECT_THAT(rank.said(), HasSubstr(GetParam().said));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, DifferentProcesses,
    testing::Values(
        Difference{"Seed", {"--seed", "1"}, {"--seed", "9"}, "rank 1 runs --seed 9, rank 0 runs --seed 1)"},
        Difference{"Data", {}, {"--data", SOURCE_DIR "/README.md"}, "README.md ("},
        Difference{"Text",
                   {"--data", SOURCE_DIR "/SECURITY.md"},
                   {"--data", SOURCE_DIR "/README.md"},
                   "bytes, digest"},
        Difference{"Schedule",
                   {},
                   {"--schedule", "gpipe"},
                   "rank 1 runs --schedule gpipe, rank 0 runs --schedule 1f1b)"},
        Difference{"Microbatch", {}, {"--mbs", "1"}, "rank 1 runs --mbs 1, rank 0 runs --mbs 2)"},
        Difference{"GlobalBatch", {}, {"--gbs", "8"}, "rank 1 runs --gbs 8, rank 0 runs --gbs 16)"},
        Difference{"Split", {}, {"--pp", "1", "--tp", "2"}, "rank 1 runs --tp 2 and --pp 1 and "},
        Difference{"Model", {}, {"--model", "llama-10m"}, "rank 1 runs --model llama-10m ("},
        Difference{"Iterations",
                   {},
                   {"--iterations", "7"},
                   "rank 1 runs --iterations 7, rank 0 runs --iterations 5)"},
        Difference{"Warmup", {}, {"--warmup", "1"}, "rank 1 runs --warmup 1, rank 0 runs --warmup 2)"}),
    [](const auto& difference) { return difference.param.name; });

// Dropout changes neither the model's shape nor its parameters.
TEST(RefusedProcesses, HaveModelsThatDifferInTheirKernelsAlone) {
  std::stringstream text;
  text << std::ifstream(SOURCE_DIR "/scenarios/models/gpt-10m.json").rdbuf();
  nlohmann::json model = nlohmann::json::parse(text.str());
  for (const char* rate : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) model[rate] = 0;
  const std::string file = temporary_file("gpt-10m.json", model.dump());
  const int port = free_port();
  Process first = rank_of_two(0, port, {}), second = rank_of_two(1, port, {"--model", file});
  EXPECT_EQ(first.wait(kPatience_s), kRefused) << first.said();
  EXPECT_EQ(second.wait(kPatience_s), kRefused) << second.said();
  EXPECT_THAT(first.said(), HasSubstr("rank 1 runs the model's kernels digest"));
}

TEST(RefusedProcesses, RunDifferentVerbs) {
  const int port = free_port();
  Process first = rank_of_two(0, port, {});
  Process second({REHEARSE, "calibrate", SOURCE_DIR "/scenarios/gpt-10m-2-cores.json", "-o",
                  temporary_file("profile.json", "") + ".new"},
                 as_torchrun(1, 2, port), temporary_file("calibrate", ""));
  EXPECT_EQ(first.wait(kPatience_s), kRefused) << first.said();
  EXPECT_EQ(second.wait(kPatience_s), kRefused) << second.said();
  EXPECT_THAT(second.said(), HasSubstr("rank 1 runs verb calibrate"));
}

TEST(RefusedProcesses, AreTheSameRank) {
  const int port = free_port();
  std::list<Process> ranks;
  for (const int rank : {0, 1, 1}) ranks.push_back(rank_of_two(rank, port, {"--iterations", "100000"}));
  for (Process& rank : ranks) {
    EXPECT_EQ(rank.wait(kPatience_s), kRefused) << rank.said();
    EXPECT_THAT(rank.said(), HasSubstr("every rank is one process (rank 1 is process "));
  }
}

TEST(RefusedProcesses, AreTwiceRankZero) {
  const int port = free_port();
  std::list<Process> ranks;
  for (int i = 0; i < 2; ++i) ranks.push_back(rank_of_two(0, port, {}));
  for (Process& rank : ranks) {
    EXPECT_EQ(rank.wait(kPatience_s), kRefused) << rank.said();
    EXPECT_THAT(rank.said(), HasSubstr("every rank is one process (rank 0 is process "));
  }
}

// The run of that other job continues.
TEST(RefusedProcesses, BelongToAnotherJobAtTheSamePort) {
  const int port = free_port();
  const Process::Variables of_a = {{"TORCHELASTIC_RUN_ID", "a"}}, of_b = {{"TORCHELASTIC_RUN_ID", "b"}};
  Process first = rank_of_two(0, port, {"--iterations", "2"}, of_a);
  Process stray = rank_of_two(1, port, {"--iterations", "2"}, of_b);
  EXPECT_EQ(stray.wait(kPatience_s), kRefused) << stray.said();
  EXPECT_THAT(stray.said(), AllOf(HasSubstr("TORCHELASTIC_RUN_ID a"), HasSubstr("TORCHELASTIC_RUN_ID b")));
  Process second = rank_of_two(1, port, {"--iterations", "2"}, of_a);
  EXPECT_EQ(first.wait(kPatience_s), 0) << first.said();
  EXPECT_EQ(second.wait(kPatience_s), 0) << second.said();
}

TEST(RefusedProcesses, AreGivenAPortThatIsNone) {
  for (const char* port : {"99999", "0", "65536"}) {
    Process rank = rank_of_two(0, 1, {}, {{"MASTER_PORT", port}});
    EXPECT_EQ(rank.wait(kPatience_s), kRefused) << rank.said();
    EXPECT_THAT(rank.said(), HasSubstr(std::string("MASTER_PORT is a port from 1 to 65535 (found ") + port));
  }
}

TEST(RefusedProcesses, OfMpirunRunDifferentJobs) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun";
  // Not as two programs (-n 1 A : -n 1 B): mpirun 5.0.7 crashes.
  Flags command = {"mpirun",
                   "--oversubscribe",
                   "-n",
                   "2",
                   "sh",
                   "-c",
                   "exec \"$@\" --seed $((1 + 8 * OMPI_COMM_WORLD_RANK))",
                   "sh"};
  const Flags rank = two_ranks({});
  command.insert(command.end(), rank.begin(), rank.end());
  Process launcher(command, {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}},
                   temporary_file("mpirun", ""));
  EXPECT_EQ(launcher.wait(kPatience_s), kRefused) << launcher.said();
  EXPECT_THAT(launcher.said(), HasSubstr("rank 1 runs --seed 9, rank 0 runs --seed 1)"));
}

// Connections to a port of this machine, made as soon as somebody listens there.
class Strangers {
 public:
  explicit Strangers(int port) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<std::uint16_t>(port));
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  ~Strangers() {
    talking_ = false;
    if (dripping_.joinable()) dripping_.join();
    for (const int stranger : strangers_) close(stranger);
  }

  void come(int count, const std::string& saying = "") {
    for (int i = 0; i < count; ++i) {
      const int stranger = socket(AF_INET, SOCK_STREAM, 0);
      while (connect(stranger, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ::send(stranger, saying.data(), saying.size(), MSG_NOSIGNAL);
      strangers_.push_back(stranger);
    }
  }
  // Sends one more byte on the last connection again and again.
  void drip() {
    dripping_ = std::thread([this] {
      while (talking_ && ::send(strangers_.back(), "x", 1, MSG_NOSIGNAL) == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    });
  }

 private:
  sockaddr_in address_ = {};
  std::vector<int> strangers_;
  std::atomic<bool> talking_ = true;
  std::thread dripping_;
};

// However they come, the two ranks train; the second comes last.
void expect_to_train_beside(const std::function<void(Strangers&)>& come,
                            const std::function<void()>& prepare = {}) {
  const Flags flags = {"--iterations", "2", "--timeout", "25", "--json"};
  const int port = free_port();
  Process first = rank_of_two(0, port, flags, {}, prepare);
  Strangers strangers(port);
  come(strangers);
  Process second = rank_of_two(1, port, flags);
  EXPECT_EQ(first.wait(kPatience_s), 0) << first.said();
  EXPECT_EQ(second.wait(kPatience_s), 0) << second.said();
  EXPECT_EQ(nlohmann::json::parse(first.said())["execution"]["losses"].size(), 4U);
}

const std::string kThreeBytes = {5, 0, 0}, kLengthOfAMegabyte = {0, 0, 0x10, 0, 0, 0, 0, 0};

TEST(StrangersBesideProcesses, MaySayThreeBytes) {
  expect_to_train_beside([](Strangers& strangers) { strangers.come(5, kThreeBytes); });
}

TEST(StrangersBesideProcesses, MaySayAByteNowAndThen) {
  expect_to_train_beside([](Strangers& strangers) {
    strangers.come(1, kLengthOfAMegabyte);
    strangers.drip();
  });
}

TEST(StrangersBesideProcesses, MayBeMoreThanAProcessMayOpenFiles) {
  expect_to_train_beside([](Strangers& strangers) { strangers.come(200); },
                         [] {
                           const rlimit files{64, 64};
                           setrlimit(RLIMIT_NOFILE, &files);
                         });
}

TEST(RefusedProcesses, AreNoneWhereRanksMeetByIpv6) {
  const int any = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has_ipv6 = bind(any, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(any);
  if (!has_ipv6) GTEST_SKIP() << "no IPv6";
  const int port = free_port();
  const Process::Variables by_ipv6 = {{"MASTER_ADDR", "::1"}};
  Process first = rank_of_two(0, port, {"--iterations", "2"}, by_ipv6);
  Process second = rank_of_two(1, port, {"--iterations", "2"}, by_ipv6);
  EXPECT_EQ(first.wait(kPatience_s), 0) << first.said();
  EXPECT_EQ(second.wait(kPatience_s), 0) << second.said();
}

}  // namespace
}  // namespace rehearse
