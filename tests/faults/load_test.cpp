// Many who turn the studio's knobs at once: each is answered, soon, and nothing is kept of it.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "studio_program.h"

namespace rehearse {
namespace {

constexpr int kClients = 32;
constexpr double kBound_s = 5;  // for an answer, on a machine that does other things too

struct Answered {
  std::mutex mutex;
  std::vector<double> seconds;
  std::map<std::string, int> by_status;
  void add(const std::string& status, double took_s) {
    const std::lock_guard lock(mutex);
    seconds.push_back(took_s);
    ++by_status[status];
  }
};

std::string question(std::mt19937& random) {
  const auto one_of = [&](const auto& values) { return values[random() % values.size()]; };
  return fmt::format(R"({{"--tp": "{}", "--pp": "{}", "--gbs": "{}", "--mbs": "{}", "--schedule": "{}"}})",
                     one_of(std::array{1, 2, 4, 8}), one_of(std::array{1, 2, 3, 4}),
                     one_of(std::array{16, 32, 48, 64}), one_of(std::array{1, 2}),
                     one_of(std::array{"1f1b", "gpipe", "zb-h1"}));
}

// A newer question may overtake one to the simulator (409), which is an answer too.
void turn_knobs(const Studio& studio, unsigned seed, const std::atomic<bool>& over, Answered& answered) {
  std::mt19937 random(seed);
  httplib::Client client = studio.client();
  while (!over) {
    const char* where = random() % 16 == 0 ? "/refine" : "/run";
    const Stopwatch watch;
    const auto answer = client.Post(where, question(random), "application/json");
    answered.add(answer ? fmt::format("{} {}", where, answer->status) : "dropped", watch.seconds());
  }
}

void load(const Studio& studio, double seconds, Answered& answered) {
  std::atomic<bool> over = false;
  std::vector<std::jthread> clients;
  for (unsigned i = 0; i < kClients; ++i)
    clients.emplace_back([&, i] { turn_knobs(studio, i, over, answered); });
  sleep_s(seconds);
  over = true;
}

TEST(Load, Of32ClientsIsAnsweredWholeAndLeavesNothing) {
  Studio studio;
  const double seconds = times(3, 60);
  Answered first, answered;
  load(studio, seconds / 3, first);
  const double before = studio.resident_bytes();
  load(studio, seconds, answered);
  const double after = studio.resident_bytes();
  EXPECT_EQ(answered.by_status.count("dropped"), 0U);
  std::string statuses;
  for (const auto& [status, count] : answered.by_status) {
    EXPECT_THAT(status, testing::AnyOf("/run 200", "/refine 200", "/refine 409"));
    statuses += fmt::format("{} x {}, ", count, status);
  }
  std::vector<double>& took = answered.seconds;
  ASSERT_FALSE(took.empty());
  std::ranges::sort(took);
  const double p99 = took[took.size() * 99 / 100];
  EXPECT_LT(p99, kBound_s * kSlower);
  constexpr double kNoise_bytes = 32e6;
  EXPECT_LT(after, before + kNoise_bytes);
  figure(fmt::format(
      "studio, {} clients for {:g} s: {}none dropped; {:.0f} answers/s, {:.0f} / {:.0f} / {:.0f} ms "
      "(median / 99th percentile / most); memory {:.1f} MB before, {:.1f} MB after",
      kClients, seconds, statuses, static_cast<double>(took.size()) / seconds, 1e3 * took[took.size() / 2],
      1e3 * p99, 1e3 * took.back(), before / 1e6, after / 1e6));
  studio.process().send(SIGTERM);
  EXPECT_EQ(studio.process().wait(20), 0);
}

}  // namespace
}  // namespace rehearse
