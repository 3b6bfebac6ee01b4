// Collectives against sums by hand, over numbers of ranks.
#include <thread>

#include "kernels/communicator.h"
#include "kernels/short_float.h"
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

using Body = std::function<void(World&, Stream&)>;

void on_worlds(const std::vector<std::unique_ptr<World>>& worlds, const std::vector<Device*>& devices,
               const Body& body) {
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < worlds.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto stream = devices[rank]->make_stream();
      body(*worlds[rank], *stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// body(world, stream) on every rank, each in a thread of its own: with messages through memory, and with
// copies by the device.
void on_ranks(int ranks, const Body& body) {
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;
  for (int rank = 0; rank < ranks; ++rank) devices.push_back(owned.emplace_back(open_cpu()).get());
  on_worlds(open_memory_worlds(ranks), devices, body);
  on_worlds(open_device_worlds(devices), devices, body);
}

std::vector<int> everyone(const World& world) {
  std::vector<int> members;
  for (int rank = 0; rank < world.size(); ++rank) members.push_back(rank);
  return members;
}

// Element i of rank r's operand.
float value(int r, std::size_t i) {
  return static_cast<float>(r * 100 + static_cast<int>(i));
}

Matrix held(int rank, std::int64_t count) {
  Matrix matrix(1, count);
  for (std::size_t i = 0; i < matrix.values.size(); ++i) matrix.values[i] = value(rank, i);
  return matrix;
}

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, AllReduceSumsOrTakesTheLargestInPlaceAndNot) {
  const int n = GetParam();
  on_ranks(n, [n](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix own = held(world.rank(), 13), sum(1, 13), largest(1, 13);
    group->all_reduce(stream, own, sum);
    group->all_reduce(stream, own, largest, Reduction::maximum);
    group->all_reduce(stream, own, own);
    stream.synchronize();
    for (std::size_t i = 0; i < 13; ++i) {
      EXPECT_EQ(sum.values[i], static_cast<float>(n * (n - 1) / 2 * 100 + n * static_cast<int>(i)));
      EXPECT_EQ(largest.values[i], value(n - 1, i));
      EXPECT_EQ(own.values[i], sum.values[i]);
    }
  });
}

TEST_P(Collectives, ReduceScatterThenAllGatherIsAnAllReduce) {
  const int n = GetParam();
  on_ranks(n, [n](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix own = held(world.rank(), 6 * n), part(1, 6), gathered(1, 6 * n), sum(1, 6 * n);
    group->all_reduce(stream, own, sum);
    group->reduce_scatter(stream, own, part);
    group->all_gather(stream, part, gathered);
    stream.synchronize();
    EXPECT_EQ(gathered.values, sum.values);
  });
}

TEST_P(Collectives, AllToAllTransposesParts) {
  const int n = GetParam();
  on_ranks(n, [n](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix own = held(world.rank(), 3 * n), got(1, 3 * n);
    group->all_to_all(stream, own, got);
    stream.synchronize();
    for (int sender = 0; sender < n; ++sender) {
      EXPECT_EQ(got.at(0, 3 * sender + 2), value(sender, static_cast<std::size_t>(3 * world.rank() + 2)));
    }
  });
}

TEST_P(Collectives, BroadcastComesFromItsRoot) {
  const int n = GetParam();
  on_ranks(n, [n](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix own = held(world.rank(), 5);
    group->broadcast(stream, own, n - 1);
    stream.synchronize();
    EXPECT_EQ(own.values[4], value(n - 1, 4));
  });
}

TEST_P(Collectives, MessagesTravelRoundARing) {
  const int n = GetParam();
  on_ranks(n, [n](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix own = held(world.rank(), 4), got(1, 4);
    for (int round = 0; round < 3; ++round) {
      group->send_receive(stream, own, (group->rank() + 1) % n, got, (group->rank() + n - 1) % n);
    }
    stream.synchronize();
    EXPECT_EQ(got.values[3], value((world.rank() + n - 1) % n, 3));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 4, 8));

TEST(Communicator, SendsArriveInOrder) {
  on_ranks(2, [](World& world, Stream& stream) {
    const auto group = world.connect("pair", {1, 0});  // rank 1 of the world is the group's first
    Matrix first = held(1, 2), second = held(2, 2), got(1, 2), then(1, 2);
    if (group->rank() == 0) {
      group->send(stream, first, 1);
      group->send(stream, second, 1);
    } else {
      group->receive(stream, got, 0);
      group->receive(stream, then, 0);
    }
    stream.synchronize();
    if (group->rank() == 1) {
      EXPECT_EQ(got.values, first.values);
      EXPECT_EQ(then.values, second.values);
    }
  });
}

TEST(Communicator, GroupsOfSomeRanksDoNotDisturbEachOther) {
  on_ranks(4, [](World& world, Stream& stream) {
    const int pair = world.rank() / 2;
    const auto row = world.connect("row", {2 * pair, 2 * pair + 1});
    const auto column = world.connect("column", {world.rank() % 2, world.rank() % 2 + 2});
    Matrix own = held(world.rank(), 1), sum(1, 1), total(1, 1);
    for (int round = 0; round < 50; ++round) {
      row->all_reduce(stream, own, sum);
      column->all_reduce(stream, sum, total);
    }
    stream.synchronize();
    EXPECT_EQ(total.values[0], 600);
  });
}

TEST(Communicator, EndsWhenARankGivesUp) {
  on_ranks(3, [](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix own = held(world.rank(), 4);
    if (world.rank() == 2) {
      world.abort("rank 2 lost its input");
      return;
    }
    try {
      group->all_reduce(stream, own, own);
      stream.synchronize();
      ADD_FAILURE() << "the collective ended without rank 2";
    } catch (const DeviceError& error) {
      EXPECT_STREQ(error.what(), "rank 2 lost its input");
    }
  });
}

TEST(Communicator, RefusesMessagesOfTheWrongLength) {
  on_ranks(2, [](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix four = held(0, 4), three(1, 3);
    if (world.rank() == 0) {
      const auto send = [&] {
        group->send(stream, four, 1);
        stream.synchronize();
      };
      EXPECT_THROW(send(), DeviceError);
    } else {
      const auto receive = [&] {
        group->receive(stream, three, 0);
        stream.synchronize();
      };
      EXPECT_THROW(receive(), DeviceError);
      world.abort("rank 1 got a message of the wrong length");
    }
    EXPECT_THROW(group->all_reduce(stream, four, three), DeviceError);
  });
}

template <typename T>
std::vector<T> rounded_values(int rank, std::int64_t count) {
  std::vector<T> values;
  for (const float value : random_matrix(1, count, static_cast<unsigned>(rank) + 1).values)
    values.emplace_back(value);
  return values;
}

// Sums of 16-bit floats are rounded after every addition, and each device may choose the order. Two numbers
// have only one sum. With more, each addition may be off by half a place of the largest partial sum.
template <typename T>
void expect_sums_of(Type type) {
  constexpr std::int64_t kCount = 24;
  const float place = type == Type::bf16 ? 0x1p-7F : 0x1p-10F;
  for (const int n : {1, 2, 3, 4}) {
    on_ranks(n, [=](World& world, Stream& stream) {
      const auto group = world.connect("all", everyone(world));
      std::vector<T> own = rounded_values<T>(world.rank(), kCount), sum(kCount), largest(kCount),
                     part(static_cast<std::size_t>(kCount / n));
      group->all_reduce(stream, vector_of(own, type), vector_of(sum, type));
      group->all_reduce(stream, vector_of(own, type), vector_of(largest, type), Reduction::maximum);
      group->reduce_scatter(stream, vector_of(own, type), vector_of(part, type));
      stream.synchronize();
      for (std::size_t i = 0; i < static_cast<std::size_t>(kCount); ++i) {
        float exact = 0, most = -1, reach = 0;
        for (int rank = 0; rank < n; ++rank) {
          const float value = rounded_values<T>(rank, kCount)[i];
          exact += value;
          reach += std::abs(value);
          most = std::max(most, value);
        }
        if (n <= 2) {
          EXPECT_EQ(sum[i], T(exact));
        } else {
          EXPECT_NEAR(sum[i], exact, static_cast<float>(n - 1) * place / 2 * reach);
        }
        EXPECT_EQ(largest[i], T(most));
      }
      for (std::size_t i = 0; i < part.size(); ++i)
        EXPECT_EQ(part[i], sum[part.size() * static_cast<std::size_t>(world.rank()) + i]);
    });
  }
}

TEST(Communicator, SumsShortFloats) {
  expect_sums_of<Bf16>(Type::bf16);
  expect_sums_of<Fp16>(Type::fp16);
}

// The same sum on every rank, bit for bit, whatever the rounding: ranks must not drift apart.
TEST(Communicator, AllReduceGivesEveryRankTheSameBits) {
  std::vector<std::vector<float>> results(3);
  on_ranks(3, [&results](World& world, Stream& stream) {
    const auto group = world.connect("all", everyone(world));
    Matrix own = random_matrix(1, 1000, static_cast<unsigned>(world.rank()) + 1);
    group->all_reduce(stream, own, own);
    stream.synchronize();
    results[static_cast<std::size_t>(world.rank())] = own.values;
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace rehearse::kernels
