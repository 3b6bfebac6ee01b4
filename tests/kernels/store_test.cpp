// Processes find each other, leave notes, and learn when one of them is gone.
#include "kernels/communicate/store.h"

#include <thread>

#include "kernels/communicate/store_server.h"
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

int free_port() {
  return port_of(listen_at(0));
}

Launched rank_at(int rank, int size, int port) {
  return {rank, size, rank, "127.0.0.1", port};
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
  {
    const Socket of_rank_1 = connect_to("127.0.0.1", port, 20);
    send_text(of_rank_1, "1");
  }
  EXPECT_EQ(wait_for_end(store), "rank 1 ended without a word");
}

TEST(Store, NoticesThatRank0Dies) {
  auto server = std::make_unique<StoreServer>(0, 0.0);
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
  { const Socket silent = connect_to("127.0.0.1", port, 20); }
  const Socket stranger = connect_to("127.0.0.1", port, 20);
  stranger.send("GET / HTTP/1.1\r\n\r\n", 18);
  store.put("key", "value");
  EXPECT_EQ(store.get("key"), "value");
  EXPECT_EQ(store.ended(), "");
}

}  // namespace
}  // namespace rehearse::kernels
