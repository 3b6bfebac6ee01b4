// One process a rank over NCCL, as torchrun starts them, and possible failures around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processes.h"
#include "sanitized.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

std::vector<Process> start(const std::vector<std::string>& arguments, Process::Variables machine) {
  std::vector<std::string> command = {PROCESS_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.emplace_back("cuda");
  machine.emplace_back("OMP_NUM_THREADS", "1");
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Process::Variables environment = as_torchrun(rank, 2, port);
    environment.insert(environment.end(), machine.begin(), machine.end());
    ranks.emplace_back(command, environment, scratch().file("rank" + std::to_string(rank)));
  }
  return ranks;
}

TEST(NcclOnCpu, RanksTrainAsOneRankDoes) {
  for (const std::vector<std::string>& split :
       {std::vector<std::string>{"2", "1", "1", "0", "bf16"}, {"1", "1", "2", "3", "fp16"}}) {
    for (Process& rank : start(split, {{"CUDA_ON_CPU_GPUS", "2"}}))
      EXPECT_EQ(rank.wait(60 * kSlower), 0) << rank.said();
  }
}

// Collectives of the dead stay on the other's GPU, which no memory can be freed of while they run.
TEST(NcclOnCpu, ADeadRankEndsTheOther) {
  std::vector<Process> ranks = start({"1", "2", "1", "0", "steps", "1000000"}, {{"CUDA_ON_CPU_GPUS", "2"}});
  constexpr double kAtWork_s = 0.5;
  while (ranks[1].busy_seconds() < kAtWork_s && !ranks[1].has_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ranks[1].send(SIGKILL);
  EXPECT_EQ(ranks[0].wait(20 * kSlower), 1);
  EXPECT_THAT(ranks[0].said(), HasSubstr("rank 1 ended without a word"));
}

// NCCL's freeing of one group waits for hanging operations of the other.
TEST(NcclOnCpu, ADeadRankEndsAllGroupsAtOnce) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Process::Variables environment = as_torchrun(rank, 2, port);
    environment.emplace_back("CUDA_ON_CPU_GPUS", "2");
    ranks.emplace_back(std::vector<std::string>{LOST_PEER}, environment,
                       scratch().file("lost" + std::to_string(rank)));
  }
  EXPECT_EQ(ranks[0].wait(20 * kSlower), 0) << ranks[0].said();
}

TEST(NcclOnCpu, TwoRanksHaveTwoGpus) {
  for (Process& rank : start({"1", "2", "1", "0"}, {{"CUDA_ON_CPU_GPUS", "1"}})) {
    EXPECT_EQ(rank.wait(20 * kSlower), 1);
    EXPECT_THAT(rank.said(), HasSubstr("two ranks have the same GPU"));
  }
}

TEST(GpuOnCpu, MayHaveTooLittleMemory) {
  Process run({PROCESS_PROGRAM, "1", "2", "1", "0", "cuda"}, {{"CUDA_ON_CPU_BYTES", "200000000"}},
              scratch().file("small"));
  EXPECT_EQ(run.wait(20 * kSlower), 1);
  EXPECT_THAT(run.said(), HasSubstr("the GPU has no"));
}

TEST(GpuOnCpu, MayNotBeThere) {
  Process run({PROCESS_PROGRAM, "1", "2", "1", "0", "cuda"}, {{"CUDA_VISIBLE_DEVICES", ""}},
              scratch().file("none"));
  EXPECT_EQ(run.wait(20 * kSlower), 77);
  EXPECT_THAT(run.said(), HasSubstr("there is no GPU"));
}

}  // namespace
}  // namespace rehearse
