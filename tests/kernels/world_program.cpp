// Every collective between processes against sums by hand: over MPI, started by mpirun, or with the argument
// "tcp" over TCP. Ends with 1 where one is wrong.
#include <cstdio>
#include <string_view>

#include "kernels/communicator.h"
#include "kernels/short_float.h"

namespace rehearse::kernels {
namespace {

int wrong = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  ++wrong;
  std::fprintf(stderr, "wrong: %s\n", what);
}

struct Numbers {
  explicit Numbers(std::size_t count, float first = 0) : values(count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  }
  operator Tensor() { return {values.data(), Type::fp32, 1, static_cast<std::int64_t>(values.size())}; }
  std::vector<float> values;
};

void exchange(World& world, Communicator& group, Stream& stream) {
  const auto n = static_cast<std::size_t>(world.size()), me = static_cast<std::size_t>(world.rank());
  const auto count = static_cast<float>(n);
  Numbers own(2 * n, 100 * static_cast<float>(me)), sum(2 * n), part(2), all(2 * n), turned(2 * n), got(2);
  group.all_reduce(stream, own, sum);
  group.reduce_scatter(stream, own, part);
  group.all_gather(stream, part, all);
  group.all_to_all(stream, own, turned);
  const int next = (world.rank() + 1) % world.size(), last = (world.rank() + world.size() - 1) % world.size();
  group.send_receive(stream, part, next, got, last);
  stream.synchronize();
  expect(sum.values[1] == 100 * count * (count - 1) / 2 + count, "all-reduce");
  expect(all.values == sum.values, "reduce-scatter and all-gather");
  expect(turned.values[3] == 100 + static_cast<float>(2 * me) + 1, "all-to-all");
  expect(got.values[0] == sum.values[2 * static_cast<std::size_t>(last)], "send and receive");
  group.broadcast(stream, own, world.size() - 1);
  stream.synchronize();
  expect(own.values[0] == 100 * (count - 1), "broadcast");
}

// Numbers that even a sum of bf16 holds exactly.
template <typename T>
void exchange_short(World& world, Communicator& group, Stream& stream, Type type) {
  const auto n = static_cast<std::size_t>(world.size());
  std::vector<T> own(2 * n), sum(2 * n), part(2), all(2 * n), most(2 * n);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = T(static_cast<float>(world.rank()) + 0.5F);
  const auto view = [type](std::vector<T>& values) {
    return Tensor(values.data(), type, 1, static_cast<std::int64_t>(values.size()));
  };
  group.all_reduce(stream, view(own), view(sum));
  group.reduce_scatter(stream, view(own), view(part));
  group.all_gather(stream, view(part), view(all));
  group.all_reduce(stream, view(own), view(most), Reduction::maximum);
  stream.synchronize();
  const auto count = static_cast<float>(n);
  for (std::size_t i = 0; i < own.size(); ++i) {
    expect(sum[i] == count * count / 2, "sum of short floats");
    expect(all[i] == count * count / 2, "reduce-scatter and all-gather of short floats");
    expect(most[i] == count - 0.5F, "maximum of short floats");
  }
}

void pair_up(World& world, Stream& stream) {
  if (world.rank() > 1) return;
  const auto pair = world.connect("pair", {0, 1});
  Numbers mail(3, 7), got(3);
  if (world.rank() == 0) {
    pair->send(stream, mail, 1);
  } else {
    pair->receive(stream, got, 0);
  }
  stream.synchronize();
  expect(world.rank() == 0 || got.values == mail.values, "send, then receive");
}

// More data than a socket accepts at once, with parts of different lengths.
void exchange_much(World& world, Communicator& group, Stream& stream) {
  const std::size_t count = 1000003;
  Numbers own(count), most(count, static_cast<float>(world.rank()));
  for (float& value : own.values) value = static_cast<float>(world.rank() + 1);
  group.all_reduce(stream, own, own);
  group.all_reduce(stream, most, most, Reduction::maximum);
  stream.synchronize();
  const int n = world.size();
  for (const float value : own.values)
    expect(value == static_cast<float>(n * (n + 1)) / 2, "long all-reduce");
  expect(most.values[7] == static_cast<float>(7 + n - 1), "maximum");
}

int run(bool tcp) {
  const auto world = tcp ? open_socket_world() : open_mpi_world();
  const auto device = open_cpu();
  const auto stream = device->make_stream();
  std::vector<int> members;
  for (int rank = 0; rank < world->size(); ++rank) members.push_back(rank);
  {
    const auto group = world->connect("all", members);
    expect(world->size() >= 2, "at least two ranks");
    exchange(*world, *group, *stream);
    exchange_short<Bf16>(*world, *group, *stream, Type::bf16);
    exchange_short<Fp16>(*world, *group, *stream, Type::fp16);
    exchange_much(*world, *group, *stream);
    pair_up(*world, *stream);
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rehearse::kernels

int main(int argc, char** argv) {
  return rehearse::kernels::run(argc > 1 && std::string_view(argv[1]) == "tcp");
}
