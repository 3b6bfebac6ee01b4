// Kernels beside others: as much slower as was measured, by the share of the others that compute.
#include "cost/concurrent_ranks.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

Profile measured() {
  Profile profile;
  profile.gemm["bf16"] = {{64, 64, 64, 2e-3}};
  profile.gemm["bf16/weight_gradient"] = {{64, 64, 64, 2e-3}};
  profile.attention = {{64, 512, true, false, 1e12}, {64, 512, true, true, 1e12}};
  profile.stream["add"] = {{1e6, 1e9}};
  profile.stream["adam"] = {{1e6, 1e9}};
  profile.measurement.emplace();
  profile.measurement->with_concurrent_ranks =
      Slowdowns{3, {{"bf16", 1.5}}, {{"backward", 1.25}}, {{"add", 3}}, {{"adam", 4}}};
  return profile;
}

TEST(InCompany, SlowsByTheShareThatComputes) {
  const Profile half = with_concurrent_ranks(measured(), 0.5);
  EXPECT_DOUBLE_EQ(half.gemm.at("bf16")[0].seconds, 2e-3 * 1.25);
  EXPECT_DOUBLE_EQ(half.gemm.at("bf16/weight_gradient")[0].seconds, 2e-3);
  EXPECT_DOUBLE_EQ(half.attention[0].flops_per_s, 1e12);
  EXPECT_DOUBLE_EQ(half.attention[1].flops_per_s, 1e12 / 1.125);
  EXPECT_DOUBLE_EQ(half.stream.at("add")[0].bytes_per_s, 1e9 / 2);
}

TEST(InCompany, TheStepHasAllBesideIt) {
  EXPECT_DOUBLE_EQ(with_concurrent_ranks(measured(), 0).stream.at("adam")[0].bytes_per_s, 1e9 / 4);
  EXPECT_DOUBLE_EQ(with_concurrent_ranks(measured(), 0).stream.at("add")[0].bytes_per_s, 1e9);
}

TEST(InCompany, OfNobodyChangesNothing) {
  Profile alone = measured();
  alone.measurement->with_concurrent_ranks.reset();
  EXPECT_DOUBLE_EQ(with_concurrent_ranks(alone, 1).gemm.at("bf16")[0].seconds, 2e-3);
}

}  // namespace
}  // namespace rehearse
