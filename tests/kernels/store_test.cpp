// Processes find each other, leave notes, and learn when one of them is gone.
#include "kernels/communicate/store.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <list>
#include <thread>

#include "kernels/communicate/store_server.h"
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

int free_port() {
  return port_of(listen_at(0));
}

Launched rank_at(int rank, int size, int port) {
  return {rank, size, rank, "127.0.0.1", port};
}

Socket stranger_at(int port) {
  return connect_to("127.0.0.1", port, Deadline(20), [] {});
}

std::string wait_for_end(const Store& store) {
  for (int i = 0; i < 500 && store.ended().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return store.ended();
}

TEST(Store, KeepsNotesForWhoeverAsksEarlyOrLate) {
  const int port = free_port();
  std::thread other([port] {
    Store store(rank_at(1, 2, port), 20);
    EXPECT_EQ(store.get("id"), std::string("a\0b", 3));
    store.put("answer", "42");
  });
  Store store(rank_at(0, 2, port), 20);
  store.put("id", std::string("a\0b", 3));
  EXPECT_EQ(store.get("answer"), "42");
  other.join();
  EXPECT_EQ(store.get("id").size(), 3U);
  EXPECT_EQ(store.ended(), "");
}

TEST(Store, LetsRanksLeaveAsSoonAsTheyHaveCome) {
  const int port = free_port();
  const Store store(rank_at(0, 2, port), 20);
  for (int i = 0; i < 500; ++i) const Store other(rank_at(1, 2, port), 20);
  EXPECT_EQ(store.ended(), "");
}

TEST(Store, TellsEverybodyOfTheEnd) {
  const int port = free_port();
  std::thread other([port] {
    Store store(rank_at(1, 2, port), 20);
    EXPECT_THROW(store.get("never"), DeviceError);
    EXPECT_EQ(wait_for_end(store), "out of data");
  });
  Store store(rank_at(0, 2, port), 20);
  store.wait_for_all();
  store.end("out of data");
  store.end("too late");
  EXPECT_EQ(wait_for_end(store), "out of data");
  other.join();
}

TEST(Store, CallsTheRollOfRanksThatStandNowhereToo) {
  const int port = free_port();
  std::thread other([port] {
    Store store(rank_at(1, 2, port), 20);
    store.pulse("0F0 of stage 1");
    store.put("pulsed", "");
    store.get("called");
  });
  Store store(rank_at(0, 2, port), 20);
  store.pulse("");
  store.get("pulsed");
  const std::vector<Store::Standing> ranks = store.roll_call();
  store.put("called", "");
  other.join();
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].at, "");
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_EQ(ranks[1].at, "0F0 of stage 1");
}

TEST(Store, NoticesARankThatDies) {
  const int port = free_port();
  Store store(rank_at(0, 2, port), 20);
  call("127.0.0.1", port, write_hello(hello_of(rank_at(1, 2, port), {})), {kThere}, 20);
  EXPECT_EQ(wait_for_end(store), "rank 1 ended without a word");
}

TEST(Store, NoticesThatRank0Dies) {
  auto server = std::make_unique<StoreServer>(0, hello_of(rank_at(0, 2, 0), {}), 20, 0.0);
  const Launched self = rank_at(1, 2, server->port());
  Store store(self, 20);
  server.reset();
  EXPECT_EQ(wait_for_end(store), "rank 0 ended without a word");
}

TEST(Store, WaitsNoLongerThanItsPatience) {
  EXPECT_THROW(Store(rank_at(1, 2, free_port()), 0.1), DeviceError);
  Store store(rank_at(0, 2, free_port()), 0.2);
  EXPECT_THROW(store.get("never"), DeviceError);
}

TEST(Store, IsNotDisturbedByStrangers) {
  const int port = free_port();
  Store store(rank_at(0, 1, port), 20);
  { const Socket gone = stranger_at(port); }
  const Socket silent = stranger_at(port), browser = stranger_at(port), slow = stranger_at(port),
               dripping = stranger_at(port);
  const std::uint64_t megabyte = 1 << 20;
  send(browser.descriptor(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
  send(slow.descriptor(), "\5\0\0", 3, MSG_NOSIGNAL);
  send(dripping.descriptor(), &megabyte, sizeof megabyte, MSG_NOSIGNAL);
  const Deadline soon(5);
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key " + std::to_string(i);
    send(dripping.descriptor(), "x", 1, MSG_NOSIGNAL);
    store.put(key, "value");
    EXPECT_EQ(store.get(key), "value");
  }
  EXPECT_FALSE(soon.has_passed());
  EXPECT_EQ(store.ended(), "");
}

TEST(Store, LetsARankInPastMoreConnectionsThanItMayHave) {
  const int port = free_port();
  Store store(rank_at(0, 2, port), 20);
  std::list<Socket> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(stranger_at(port));
  const Deadline soon(10);
  Store other(rank_at(1, 2, port), 20);
  store.wait_for_all();
  EXPECT_FALSE(soon.has_passed());
}

TEST(Store, EndsWhenARankStopsInTheMiddleOfAMessage) {
  const int port = free_port();
  Store store(rank_at(0, 2, port), 0.5);
  const Answered rank = call("127.0.0.1", port, write_hello(hello_of(rank_at(1, 2, port), {})), {kThere}, 20);
  send(rank.socket.socket().descriptor(), "\5\0\0", 3, MSG_NOSIGNAL);
  EXPECT_EQ(wait_for_end(store), "rank 1 stopped in the middle of a message");
}

TEST(Store, SaysWhoHasNotCome) {
  const int port = free_port();
  Store store(rank_at(0, 4, port), 0.2);
  const Store other(rank_at(2, 4, port), 20);
  try {
    store.wait_for_all();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "ranks 1, 3 of 4 did not come within 0.2 s");
  }
}

// The message that a rank gets from rank 0, and how the run of rank 0 ends: "" where it continues.
struct Ends {
  std::string of_rank, of_run;
};
Ends ends_of(const Job& first, const Job& second, const Launched& rank) {
  Launched self = rank_at(0, rank.size, rank.port);
  self.job_id = "SLURM_JOB_ID 12";
  Store store(self, 20, first);
  Ends ends;
  try {
    const Store other(rank, 20, second);
  } catch (const Refused& error) {
    ends.of_rank = error.what();
  }
  store.put("asked", "after");
  try {
    store.get("asked");
    if (rank.rank != 0 && rank.job_id == self.job_id) ends.of_run = wait_for_end(store);
  } catch (const Refused& error) {
    ends.of_run = error.what();
  }
  return ends;
}

TEST(Store, RefusesRanksOfDifferentJobs) {
  Launched rank = rank_at(1, 2, free_port());
  rank.job_id = "SLURM_JOB_ID 12";
  const Job first = {
      {"--seed", "1"}, {"--mbs", "2"}, {"--data", "12 bytes", "a.txt"}, {"ops", "a", {}, true}};
  Job second = first;
  second[0].value = "9";
  second[2] = {"--data", "none"};
  second[3].value = "b";
  const Ends ends = ends_of(first, second, rank);
  EXPECT_THAT(ends.of_rank,
              HasSubstr("(rank 1 runs --seed 9 and --data none, rank 0 runs --seed 1 and --data "
                        "a.txt (12 bytes))"));
  EXPECT_EQ(ends.of_run, ends.of_rank);
}

TEST(Store, NamesWhatFollowsWhereNothingElseDiffers) {
  Launched rank = rank_at(1, 2, free_port());
  rank.job_id = "SLURM_JOB_ID 12";
  const Ends ends = ends_of({{"--seed", "1"}, {"ops", "a", {}, true}}, {{"--seed", "1"}, {"ops", "b"}}, rank);
  EXPECT_THAT(ends.of_rank, HasSubstr("(rank 1 runs ops b, rank 0 runs ops a)"));
}

TEST(Store, RefusesAnotherNumberOfRanks) {
  Launched rank = rank_at(2, 3, free_port());
  rank.job_id = "SLURM_JOB_ID 12";
  Store store([&] {
    Launched self = rank_at(0, 2, rank.port);
    self.job_id = rank.job_id;
    return self;
  }());
  EXPECT_THROW(Store(rank, 20), Refused);
  EXPECT_THAT(wait_for_end(store), HasSubstr("rank 2 runs WORLD_SIZE 3, rank 0 runs WORLD_SIZE 2"));
}

TEST(Store, RefusesARankOfAnotherJobAndGoesOn) {
  Launched rank = rank_at(1, 2, free_port());
  rank.job_id = "TORCHELASTIC_RUN_ID b";
  const Ends ends = ends_of({}, {}, rank);
  EXPECT_THAT(ends.of_rank, AllOf(HasSubstr("job TORCHELASTIC_RUN_ID b"), HasSubstr("job SLURM_JOB_ID 12")));
  EXPECT_EQ(ends.of_run, "");
}

TEST(Store, RefusesTwoProcessesOfOneRank) {
  const int port = free_port();
  Store store(rank_at(0, 2, port), 20), first(rank_at(1, 2, port), 20);
  EXPECT_THROW(Store(rank_at(1, 2, port), 20), Refused);
  EXPECT_THAT(wait_for_end(store), HasSubstr("every rank is one process (rank 1 is process "));
  EXPECT_EQ(wait_for_end(first), wait_for_end(store));
  EXPECT_TRUE(first.refused());
}

TEST(Store, RefusesASecondRankZero) {
  const int port = free_port();
  Store store(rank_at(0, 2, port), 20);
  EXPECT_THROW(Store(rank_at(0, 2, port), 20), Refused);
  EXPECT_THAT(wait_for_end(store), HasSubstr("(rank 0 is process "));
}

TEST(Store, SaysThatAnotherProgramHasItsPort) {
  const Socket other = listen_at(0);
  try {
    const Store store(rank_at(0, 2, port_of(other)), 20);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot listen at port"));
  }
}

TEST(Store, IsReachedByIpv6) {
  Launched first = rank_at(0, 2, free_port()), second = rank_at(1, 2, first.port);
  first.host = second.host = "::1";
  try {
    connect_to("::1", port_of(listen_at(0)), Deadline(0), [] {});
  } catch (const DeviceError& error) {
    if (std::string(error.what()).find("refused") == std::string::npos) GTEST_SKIP() << error.what();
  }
  Store store(first, 20), other(second, 20);
  store.put("key", "value");
  EXPECT_EQ(other.get("key"), "value");
  EXPECT_EQ(other.own_address(), "::1");
}

TEST(Hello, OfSomethingElseIsNone) {
  for (const char* text : {"", "1", "GET / HTTP/1.1", "rehearse/1\n", "rehearse/1\n-1\np\n\n",
                           "rehearse/1\n1x\np\n\n", "rehearse/1\n99999999999\np\n\n"})
    EXPECT_FALSE(read_hello(text)) << text;
}

TEST(Hello, IsReadAsItWasWritten) {
  Launched self = rank_at(3, 8, 1);
  self.job_id = "a\nb";
  const std::optional<Hello> hello =
      read_hello(write_hello(hello_of(self, {{"--seed", "9"}, {"x", "", "file"}})));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->rank, 3);
  EXPECT_EQ(hello->job_id, "a b");
  ASSERT_EQ(hello->job.size(), 3U);
  EXPECT_EQ(hello->job[0].value, "8");
  EXPECT_EQ(hello->job[2].origin, "file");
}

}  // namespace
}  // namespace rehearse::kernels
