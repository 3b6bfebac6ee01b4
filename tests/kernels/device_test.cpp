// Streams keep their order, events order streams, failures come out.
#include <chrono>
#include <thread>

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/stream.h"
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

using namespace std::chrono_literals;

TEST(Stream, RunsCallsInTheOrderInWhichTheyWerePut) {
  const auto device = open_cpu();
  const auto stream = device->make_stream();
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) cpu::as_cpu(*stream).put([&order, i] { order.push_back(i); });
  stream->synchronize();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Event, MakesOneStreamWaitForAnother) {
  const auto device = open_cpu();
  const auto first = device->make_stream(), second = device->make_stream();
  std::vector<int> order;
  cpu::as_cpu(*first).put([&order] {
    std::this_thread::sleep_for(20ms);
    order.push_back(1);
  });
  second->wait(first->record());
  cpu::as_cpu(*second).put([&order] { order.push_back(2); });
  second->synchronize();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Event, TellsTheTimeBetweenTwoPoints) {
  const auto device = open_cpu();
  const auto stream = device->make_stream();
  const auto before = stream->record();
  cpu::as_cpu(*stream).put([] { std::this_thread::sleep_for(20ms); });
  const auto after = stream->record();
  after->wait();
  EXPECT_GE(after->seconds_since(*before), 0.02);
  EXPECT_LT(after->seconds_since(*before), 2.0);
}

TEST(Stream, ThrowsAFailureOnceAndSkipsWhatStandsBehindIt) {
  const auto device = open_cpu();
  const auto stream = device->make_stream();
  bool ran = false;
  cpu::as_cpu(*stream).put([] { throw DeviceError("planted"); });
  cpu::as_cpu(*stream).put([&ran] { ran = true; });
  const auto event = stream->record();
  EXPECT_THROW(stream->synchronize(), DeviceError);
  EXPECT_THROW(event->wait(), DeviceError);  // happens after a failure too, and reports it
  EXPECT_FALSE(ran);
  stream->synchronize();
}

void expect_failures_at_events(Device& device) {
  const auto first = device.make_stream(), second = device.make_stream();
  const Buffer memory(device, 8);
  first->launch(Randomise{Tensor(memory.data(), Type::int32, 1, 2), 0, 1, 1});  // no device has such
  const auto event = first->record();
  second->wait(event);
  EXPECT_THROW(event->wait(), DeviceError);
  EXPECT_THROW(second->record()->wait(), DeviceError);
  EXPECT_THROW(first->synchronize(), DeviceError);
  EXPECT_THROW(second->synchronize(), DeviceError);
  first->record()->wait();
}

TEST(Event, ThrowsWhatHasFailedBeforeItOnAnyStreamThatItWaitsFor) {
  expect_failures_at_events(*open_cpu());
}

TEST(Event, ThrowsWhatHasFailedBeforeItOnAGpu) {
  std::unique_ptr<Device> device;
  try {
    device = open_cuda();
  } catch (const DeviceMissing& missing) {
    GTEST_SKIP() << missing.what();
  }
  expect_failures_at_events(*device);
}

TEST(Stream, CopiesAndClears) {
  const auto device = open_cpu();
  const auto stream = device->make_stream();
  std::vector<float> from = {1, 2, 3}, to(3);
  stream->copy(to.data(), from.data(), 12);
  stream->clear(from.data(), 8);
  stream->synchronize();
  EXPECT_EQ(to, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(from, (std::vector<float>{0, 0, 3}));
}

TEST(Device, SaysWhatItIs) {
  const auto device = open_cpu(2);
  const DeviceFacts facts = device->facts();
  EXPECT_EQ(facts.kind, "cpu");
  EXPECT_EQ(facts.cores, 2);
  EXPECT_GT(facts.cache_bytes, 1e5);
  EXPECT_NE(facts.libraries.at(0).find("OpenBLAS"), std::string::npos);
  EXPECT_THROW(open_cpu(0), DeviceError);
#ifdef __x86_64__
  EXPECT_GT(device->clock_hz(), 5e8);
  EXPECT_LT(device->clock_hz(), 8e9);
#endif
}

TEST(Device, AllocatesAlignedMemoryAndRefusesTheImpossible) {
  const auto device = open_cpu();
  const Buffer buffer(*device, 100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
}

TEST(Exponential, IsWithinTwoUnitsOfTheLastPlace) {
  for (float x = -86; x < 87; x += 0.0137F) {
    const double exact = std::exp(double{x});
    ASSERT_NEAR(cpu::exponential(x) / exact, 1, 2.5e-7) << x;
  }
  EXPECT_LT(cpu::exponential(-1e9F), 1e-37F);
}

}  // namespace
}  // namespace rehearse::kernels
