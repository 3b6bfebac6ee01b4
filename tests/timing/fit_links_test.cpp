// Messages that obey the cost model give its latency and bandwidth back.
#include "calibrate/timing/fit_links.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

constexpr Port kPort{10e9, 1e-6};

double share(double members) {
  return (members - 1) / members;
}

std::vector<MessageSample> ring_messages(double latency, double step, double bandwidth) {
  std::vector<MessageSample> messages;
  for (const std::int64_t n : {2, 4, 8}) {
    for (const double bytes : {1024.0, 65536.0, 1048576.0, 16777216.0}) {
      const auto members = static_cast<double>(n);
      messages.push_back({"all_reduce", n, bytes,
                          latency + 2 * (members - 1) * step + 2 * share(members) * bytes / bandwidth, 0});
      messages.push_back(
          {"all_gather", n, bytes, latency + (members - 1) * step + share(members) * bytes / bandwidth, 0});
    }
  }
  return messages;
}

TEST(FitLinks, GivesBackTheCostsOfARing) {
  const FittedLinks fitted = fit_links(ring_messages(5e-6, 2e-6, 4e9), kPort, "shared-memory");
  ASSERT_EQ(fitted.links.size(), 1U);
  EXPECT_EQ(fitted.links[0].op, "ring");
  EXPECT_NEAR(fitted.links[0].latency_s, 5e-6, 1e-10);
  EXPECT_NEAR(fitted.links[0].step_latency_s, 2e-6, 1e-10);
  EXPECT_NEAR(fitted.links[0].efficiency, 0.4, 1e-6);
  EXPECT_LT(fitted.worst_error, 1e-6);
}

TEST(FitLinks, NeverGivesANegativeCost) {
  // Faster than proportional to size at the small end: the free fit would take a negative latency.
  const std::vector<MessageSample> messages = {{"send_receive", 2, 1e3, 1e-7, 0},
                                               {"send_receive", 2, 1e6, 5e-4, 0},
                                               {"send_receive", 2, 1e7, 6e-3, 0}};
  const FittedLinks fitted = fit_links(messages, kPort, "shared-memory");
  ASSERT_EQ(fitted.links.size(), 1U);
  EXPECT_EQ(fitted.links[0].op, "send");
  EXPECT_GE(fitted.links[0].latency_s, 0);
  EXPECT_GT(fitted.worst_error, 0);
}

TEST(FitLinks, HoldsBandwidthToThePortAndSaysSo) {
  const FittedLinks fitted = fit_links(ring_messages(5e-6, 2e-6, 40e9), kPort, "shared-memory");
  EXPECT_EQ(fitted.links[0].efficiency, 1);
  EXPECT_TRUE(fitted.above_port);
}

TEST(FitLinks, OfNoMessagesIsNoLink) {
  EXPECT_TRUE(fit_links({}, kPort, "shared-memory").links.empty());
}

}  // namespace
}  // namespace rehearse
