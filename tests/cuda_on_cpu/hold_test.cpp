// A stream that is held runs nothing until the hold ends, and does not wait for ever.
#include "kernels/hold.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "kernels/device.h"

namespace rehearse::kernels {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Fills a few numbers behind a hold.
struct Held {
  std::unique_ptr<Device> device = open_cuda();
  Buffer memory{*device, 16 * sizeof(float)};
  std::unique_ptr<Stream> stream = device->make_stream();
  std::optional<Hold> hold{std::in_place};
  Clock::time_point begin = Clock::now();
  bool held = stream->hold(*hold);
  std::shared_ptr<Event> first = stream->record();
  std::shared_ptr<Event> last = fill();

  std::shared_ptr<Event> fill() {
    stream->launch(Randomise{{memory.data(), Type::fp32, 1, 16}, 0, 1, 1});
    return stream->record();
  }
};

TEST(HeldStream, RunsWhatIsBehindItOneRightAfterTheOther) {
  constexpr double kLaunching = 0.2;
  Held run;
  EXPECT_TRUE(run.held);
  std::this_thread::sleep_for(std::chrono::duration<double>(kLaunching));
  run.hold->end();
  run.stream->synchronize();
  EXPECT_GE(seconds_since(run.begin), kLaunching);
  EXPECT_LT(run.last->seconds_since(*run.first), kLaunching / 2) << "what the host took is in it";
}

TEST(HeldStream, IsFreeWhenTheHoldGoes) {
  Held run;
  run.hold.reset();
  run.stream->synchronize();
  EXPECT_LT(seconds_since(run.begin), 0.9);
}

TEST(HeldStream, WaitsASecondForOneThatNobodyEnds) {
  Held run;
  run.stream->synchronize();
  EXPECT_GE(seconds_since(run.begin), 0.9);
}

TEST(HeldStream, IsNoneOfACore) {
  const std::unique_ptr<Device> core = open_cpu();
  const std::unique_ptr<Stream> stream = core->make_stream();
  const Hold hold;
  EXPECT_FALSE(stream->hold(hold));
  stream->synchronize();
}

}  // namespace
}  // namespace rehearse::kernels
