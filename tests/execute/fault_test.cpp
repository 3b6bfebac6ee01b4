// A failure ends the run with a message that names it, in bounded time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include "base/error.h"
#include "cases.h"
#include "execute/execute.h"
#include "kernels/cpu/stream.h"
#include "sanitized.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kPatience = 0.5 * kSlower;

Training two_stages() {
  return training_of(tiny_llama(), plan_of(ScheduleName::one_f_one_b, 1, 2, 1));
}

// The list without its op `left_out`, whose waiters wait for nothing in its stead.
RankOps without(const RankOps& ops, std::size_t left_out) {
  RankOps result;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (i == left_out) continue;
    std::vector<std::int32_t> waits;
    for (std::int32_t wait : ops.waits(ops[i])) {
      if (static_cast<std::size_t>(wait) == left_out) continue;
      waits.push_back(static_cast<std::size_t>(wait) > left_out ? wait - 1 : wait);
    }
    result.add(ops[i], waits);
  }
  return result;
}

std::size_t find(const RankOps& ops, OpKind kind, int microbatch) {
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].kind == kind && ops[i].microbatch == microbatch) return i;
  ADD_FAILURE() << "no such op";
  return 0;
}

void exchange_ops(RankOps& ops, std::size_t a, std::size_t b) {
  RankOps result;
  for (std::size_t i = 0; i < ops.size(); ++i)
    result.add(ops[i == a   ? b
                   : i == b ? a
                            : i],
               i == a || i == b ? std::span<const std::int32_t>{} : ops.waits(ops[i]));
  ops = result;
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(LostMessage, IsFoundBeforeTheRun) {
  Training training = two_stages();
  RankOps& ops = training.schedule.ranks[0];
  ops = without(ops, find(ops, OpKind::send_forward, 3));
  EXPECT_THROW(execute(training, {}), InputError);
}

// A gradient that was left out on both sides: the messages pair, the ops lack their input.
TEST(MissingMessages, AreNamedWithTheOpThatNeedsThem) {
  Training training = two_stages();
  RankOps &first = training.schedule.ranks[0], &second = training.schedule.ranks[1];
  first = without(first, find(first, OpKind::recv_backward, 2));
  second = without(second, find(second, OpKind::send_backward, 2));
  RankPool rank_pool(training, {kPatience, {}});
  EXPECT_THAT([&] { rank_pool.step(); },
              ThrowsMessage<kernels::DeviceError>(
                  AllOf(HasSubstr("rank 0 cannot run 0B2"), HasSubstr("has not arrived"))));
}

TEST(WrongOrder, OfComputeOpsIsNamed) {
  Training training = two_stages();
  RankOps& ops = training.schedule.ranks[1];
  exchange_ops(ops, find(ops, OpKind::forward, 1), find(ops, OpKind::backward, 1));
  RankPool rank_pool(training, {kPatience, {}});
  EXPECT_THAT([&] { rank_pool.step(); },
              ThrowsMessage<kernels::DeviceError>(
                  AllOf(HasSubstr("rank 1 cannot run 1B1"), HasSubstr("its forward has not run"))));
}

Training with_divided_parameters() {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 2);
  plan.zero = 3;
  return training_of(tiny_llama(), plan);
}

Training without_a_gather() {
  Training training = with_divided_parameters();
  RankOps& ops = training.schedule.ranks[0];
  std::size_t gather = 0;
  while (ops[gather].kind != OpKind::unshard || ops[gather].part != 2) ++gather;
  std::size_t drop = gather;
  while (ops[drop].kind != OpKind::reshard || ops[drop].part != 2) ++drop;
  ops = without(without(ops, drop), gather);
  return training;
}

TEST(MissingGather, IsNamedWithTheParameterThatIsNotThere) {
  RankPool rank_pool(without_a_gather(), {kPatience, {}});
  EXPECT_THAT([&] { rank_pool.step(); }, ThrowsMessage<kernels::DeviceError>(
                                             AllOf(HasSubstr("cannot run 0F0.2"), HasSubstr("of layers.2"))));
}

struct Counted {
  std::shared_ptr<void> count;
};

// Counted until its thread has ended.
class CountedStream : private Counted, public kernels::cpu::CpuStream {
 public:
  explicit CountedStream(std::shared_ptr<void> streams) : Counted{std::move(streams)}, CpuStream(1) {}
};

// Notes whether memory goes while streams are there that may read it.
class WatchedDevice : public kernels::Device {
 public:
  struct Seen {
    std::atomic<bool> failed = false;
    std::atomic<int> released = 0, released_too_early = 0;  // since the failure
  };
  explicit WatchedDevice(Seen& seen) : seen_(seen) {}
  kernels::DeviceFacts facts() const override { return cpu_->facts(); }
  void* allocate(std::size_t bytes, kernels::Place place) override { return cpu_->allocate(bytes, place); }
  void release(void* memory, kernels::Place place) override {
    if (seen_.failed) ++seen_.released;
    if (seen_.failed && streams_.use_count() > 1) ++seen_.released_too_early;
    cpu_->release(memory, place);
  }
  std::unique_ptr<kernels::Stream> make_stream() override {
    return std::make_unique<CountedStream>(streams_);
  }
  double clock_hz() override { return cpu_->clock_hz(); }

 private:
  Seen& seen_;
  std::unique_ptr<kernels::Device> cpu_ = kernels::open_cpu();
  std::shared_ptr<void> streams_ = std::make_shared<int>();
};

TEST(FailedStep, LeavesMemoryUntilTheStreamsOfAllRanksHaveEnded) {
  const Training training = without_a_gather();
  WatchedDevice::Seen seen;
  {
    DeviceSet device_set = threads_of(training.plan);
    device_set.devices.front() = std::make_unique<WatchedDevice>(seen);
    RankPool rank_pool(training, {kPatience, {}}, std::move(device_set));
    EXPECT_THROW(rank_pool.step(), kernels::DeviceError);
    seen.failed = true;
  }
  EXPECT_GT(seen.released, 0);
  EXPECT_EQ(seen.released_too_early, 0);
}

// On one stream, rank 0 receives the gradient of a microbatch before it sends the activation that the
// gradient depends on.
TEST(Deadlock, EndsInBoundedTimeAndNamesEveryRankThatWaits) {
  Training training = two_stages();
  RankOps& from = training.schedule.ranks[0];
  const std::size_t receive = find(from, OpKind::recv_backward, 0),
                    send = find(from, OpKind::send_forward, 0);
  RankOps blocked;
  std::vector<std::int32_t> moved(from.size());
  const auto copy = [&](std::size_t i) {
    std::vector<std::int32_t> waits;
    for (const std::int32_t wait : from.waits(from[i]))
      waits.push_back(moved[static_cast<std::size_t>(wait)]);
    moved[i] = blocked.add(from[i], waits);
  };
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i == send) {
      copy(receive);
      Op late = from[send];
      late.stream = Stream::recv_backward;
      moved[send] = blocked.add(late, {moved[find(from, OpKind::forward, 0)]});
    } else if (i != receive) {
      copy(i);
    }
  }
  training.schedule.ranks[0] = blocked;
  RankPool rank_pool(training, {kPatience, {}});
  const double took = seconds([&] {
    EXPECT_THAT([&] { rank_pool.step(); },
                ThrowsMessage<kernels::DeviceError>(AllOf(HasSubstr("no op has ended for "),
                                                          HasSubstr("rank 0 is at 0RECV_B0"),
                                                          HasSubstr("rank 1 is at 1RECV_F0"))));
  });
  EXPECT_LT(took, 10 * kPatience);
}

TEST(Interruption, EndsTheRun) {
  std::atomic<bool> stop = false;
  RankPool rank_pool(two_stages(), {10, [&] { return stop.load(); }});
  rank_pool.step();
  stop = true;
  EXPECT_THROW(
      {
        for (int step = 0; step < 1000; ++step) rank_pool.step();
      },
      Interrupted);
}

// A device with so many bytes.
class SmallDevice : public kernels::Device {
 public:
  explicit SmallDevice(std::size_t bytes) : left_(bytes) {}
  kernels::DeviceFacts facts() const override { return cpu_->facts(); }
  void* allocate(std::size_t bytes, kernels::Place place) override {
    std::size_t left = left_;
    do {
      if (bytes > left) throw kernels::OutOfMemory("no " + std::to_string(bytes) + " bytes are left");
    } while (!left_.compare_exchange_weak(left, left - bytes));
    return cpu_->allocate(bytes, place);
  }
  void release(void* memory, kernels::Place place) override { cpu_->release(memory, place); }
  std::unique_ptr<kernels::Stream> make_stream() override { return cpu_->make_stream(); }
  double clock_hz() override { return cpu_->clock_hz(); }

 private:
  std::unique_ptr<kernels::Device> cpu_ = kernels::open_cpu();
  std::atomic<std::size_t> left_;
};

TEST(OutOfMemory, EndsTheRunAndNamesTheRankWhereverItStrikes) {
  for (const std::size_t bytes : {1000U, 100000U, 300000U}) {
    const Training training = two_stages();
    DeviceSet device_set = threads_of(training.plan);
    device_set.devices.front() = std::make_unique<SmallDevice>(bytes);
    EXPECT_THAT(
        [&] {
          RankPool rank_pool(training, {kPatience, {}}, std::move(device_set));
          for (int step = 0; step < 3; ++step) rank_pool.step();
        },
        ThrowsMessage<kernels::OutOfMemory>(AllOf(HasSubstr("rank "), HasSubstr("bytes are left"))))
        << bytes;
  }
}

// A step of thousands of microbatches, ended in its middle.
TEST(PartialRun, HasWhatEndedBeforeTheFailure) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 1);
  plan.global_batch = 10000;
  const Training training = training_of(tiny_llama(), plan);
  constexpr int kQuestions = 200 * kSlower;  // every other millisecond
  std::atomic<bool> runs = false;
  std::atomic<int> asked = 0;
  RankPool rank_pool(training, {10, [&] { return runs && ++asked > kQuestions; }});
  EXPECT_TRUE(rank_pool.partial().timeline.ranks.empty());
  runs = true;
  EXPECT_THROW(rank_pool.step(), Interrupted);
  const PartialRun partial = rank_pool.partial();
  require_fits(partial.timeline, partial.schedule);
  EXPECT_GT(partial.schedule.ranks[0].size(), 10U);
  EXPECT_LT(partial.schedule.ranks[0].size(), training.schedule.ranks[0].size());
  EXPECT_GT(partial.timeline.end(), 0);
}

// Issues as slowly as a device does whose queue is full.
class SlowlyIssued : public kernels::cpu::CpuStream {
 public:
  SlowlyIssued() : CpuStream(1) {}
  std::shared_ptr<kernels::Event> record() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * kSlower));
    return CpuStream::record();
  }
};

class SlowDevice : public SmallDevice {
 public:
  SlowDevice() : SmallDevice(std::numeric_limits<std::size_t>::max()) {}
  std::unique_ptr<kernels::Stream> make_stream() override { return std::make_unique<SlowlyIssued>(); }
};

TEST(Patience, IsNotLostWhileOpsAreIssued) {
  const Training training = two_stages();
  DeviceSet device_set = threads_of(training.plan);
  device_set.devices.front() = std::make_unique<SlowDevice>();
  RankPool rank_pool(training, {kPatience, {}}, std::move(device_set));
  EXPECT_GT(seconds([&] { EXPECT_NO_THROW(rank_pool.step()); }), 2 * kPatience);
}

TEST(Plan, ThatCannotBeExecutedIsRefusedWithEveryReason) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 2);
  EXPECT_TRUE(not_executable(tiny_llama(), plan).empty());
  plan.ep = 2;
  plan.moe_imbalance = 2;
  plan.precision = Precision::fp8;
  plan.grad_reduce = Precision::fp16;
  const std::vector<Violation> found = not_executable(tiny_mixtral(), plan);
  std::vector<std::string> fields;
  for (const Violation& violation : found) fields.push_back(violation.pointer);
  EXPECT_THAT(fields, testing::UnorderedElementsAre("moe_imbalance", "precision", "grad_reduce"));
}

TEST(Plan, ThatOffloadsATableWhichIsReadInTwoStagesIsRefused) {
  Plan plan = plan_of(ScheduleName::zb_v, 1, 2, 1);
  plan.offload = Offload::optimizer;
  EXPECT_TRUE(not_executable(tiny_llama(), plan).empty());
  const std::vector<Violation> found = not_executable(tiny_gpt(), plan);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pointer, "offload");
}

TEST(Execute, NeedsAStepToCount) {
  EXPECT_THROW(execute(two_stages(), {0, 0, {}}), InputError);
}

}  // namespace
}  // namespace rehearse
