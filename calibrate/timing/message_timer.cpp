#include "calibrate/timing/message_timer.h"

#include <cmath>
#include <thread>

#include "kernels/communicator.h"

namespace rehearse {

namespace {

using kernels::Tensor;

// One rank: its device, its end of the group, and the buffers of one operation.
class Member {
 public:
  Member(kernels::World& world, const MessageJob& job) : job_(job), stream_(device_->make_stream()) {
    std::vector<int> members;
    for (int rank = 0; rank < job.members; ++rank) members.push_back(rank);
    group_ = world.connect("timed", members);
    // nccl-tests' size is that of the full buffer, which only one side of a gather or scatter holds.
    const auto part = static_cast<std::int64_t>(std::ceil(job.bytes / sizeof(float) / job.members));
    const bool gathers = job.op == CollectiveOp::all_gather;
    const bool scatters = job.op == CollectiveOp::reduce_scatter;
    const std::int64_t whole = part * job.members;
    from_ = buffer(from_memory_, gathers ? part : whole);
    to_ = buffer(to_memory_, scatters ? part : whole);
    stream_->launch(kernels::Randomise{from_, 0, 1, 1});
    stream_->launch(kernels::Randomise{to_, 0, 1, 2});
    stream_->synchronize();
  }

  double run(int launches) {
    put(1);  // all ranks leave it together
    const auto begin = stream_->record();
    put(launches);
    const auto end = stream_->record();
    stream_->synchronize();
    return end->seconds_since(*begin);
  }

 private:
  Tensor buffer(kernels::Buffer& memory, std::int64_t elements) {
    memory = kernels::Buffer(*device_, static_cast<std::size_t>(elements) * sizeof(float));
    return {memory.data(), kernels::Type::fp32, 1, elements};
  }

  void put(int launches) {
    for (int i = 0; i < launches; ++i) {
      switch (job_.op) {
        case CollectiveOp::all_reduce:
          group_->all_reduce(*stream_, from_, to_);
          break;
        case CollectiveOp::all_gather:
          group_->all_gather(*stream_, from_, to_);
          break;
        case CollectiveOp::reduce_scatter:
          group_->reduce_scatter(*stream_, from_, to_);
          break;
        case CollectiveOp::all_to_all:
          group_->all_to_all(*stream_, from_, to_);
          break;
        case CollectiveOp::broadcast:
          group_->broadcast(*stream_, to_, 0);
          break;
        case CollectiveOp::send_receive:
          if (group_->rank() == 0) group_->send(*stream_, from_, 1);
          if (group_->rank() == 1) group_->receive(*stream_, to_, 0);
          break;
      }
    }
  }

  const MessageJob& job_;
  std::unique_ptr<kernels::Device> device_ = kernels::open_cpu();
  std::unique_ptr<kernels::Stream> stream_;
  std::unique_ptr<kernels::Communicator> group_;
  kernels::Buffer from_memory_, to_memory_;
  Tensor from_, to_;
};

// Runs body(rank) on as many threads and returns when all have ended.
template <typename Body>
void side_by_side(int ranks, const Body& body) {
  std::vector<std::thread> threads;
  for (int rank = 1; rank < ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  body(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

std::vector<double> time_message(const MessageJob& job, double budget_s,
                                 const std::function<bool()>& stopped) {
  const auto worlds = kernels::open_memory_worlds(job.members);
  std::vector<std::unique_ptr<Member>> members(worlds.size());
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  side_by_side(job.members,
               [&](int rank) { members[at(rank)] = std::make_unique<Member>(*worlds[at(rank)], job); });
  const auto run = [&](int launches) {
    std::vector<double> seconds(worlds.size());
    side_by_side(job.members, [&](int rank) { seconds[at(rank)] = members[at(rank)]->run(launches); });
    double sum = 0;
    for (const double each : seconds) sum += each;
    return sum / static_cast<double>(seconds.size());
  };
  return sample(run, budget_s, stopped);
}

}  // namespace rehearse
