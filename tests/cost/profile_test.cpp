#include "cost/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace rehearse {
namespace {

TEST(Profile, ShipsForA100H100AndACpu) {
  EXPECT_THAT(profile_names(), testing::IsSupersetOf({"a100-sxm-80gb", "cpu-generic", "h100-sxm"}));
}

TEST(Profile, ThatShipsNamesItsSourcesAndTheirLicences) {
  for (const std::string name : {"a100-sxm-80gb", "h100-sxm"}) {
    const Profile profile = read_profile(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_EQ(profile.how, How::published);
    EXPECT_GE(profile.sources.size(), 5u);
    EXPECT_NE(profile.collectives, nullptr);
    for (const Source& source : profile.sources) {
      EXPECT_FALSE(source.title.empty());
      EXPECT_FALSE(source.note.empty());
      if (source.title.starts_with("rehearse calibrate")) continue;  // our own
      EXPECT_THAT(source.license,
                  testing::AnyOf("MIT", "MIT-0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "UPL-1.0"))
          << source.title;
    }
  }
}

TEST(Profile, OfTheCpuSaysThatItIsModelled) {
  const Profile profile = read_profile("cpu-generic");
  EXPECT_EQ(profile.how, How::modelled);
  for (const LinkCost& link : profile.links) EXPECT_EQ(link.how, How::modelled);
}

TEST(Profile, UnknownByNameIsRefusedWithTheNearest) {
  try {
    read_profile("h100-sx");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_TRUE(error.violations().front().nearest.starts_with("h100-sxm,")) << error.what();
  }
}

// The last sample of at most so many bytes.
double norm_rate(const Profile& profile, double bytes) {
  double rate = 0;
  for (const StreamSample& sample : profile.stream.at("norm"))
    if (sample.bytes <= bytes) rate = sample.bytes_per_s;
  return rate;
}

TEST(Kernels, OfNormsReplaceTheDefaultFromTheirSmallestSizeOn) {
  const Profile usual = read_profile("a100-sxm-80gb");
  Profile persistent = usual;
  use_norm(persistent, "persistent");
  EXPECT_EQ(norm_rate(persistent, 30e6), norm_rate(usual, 30e6));
  EXPECT_EQ(norm_rate(persistent, 1e9), 1258e9);
  EXPECT_LT(norm_rate(usual, 1e9), 1000e9);
  EXPECT_EQ(persistent.name, "a100-sxm-80gb, norms by persistent");
}

TEST(Kernels, ThatTheProfileDoesNotHaveAreRefusedByName) {
  const auto refusal = [](auto&& use) -> std::string {
    Profile profile = read_profile("a100-sxm-80gb");
    try {
      use(profile, "slow");
    } catch (const MissingCalibration& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(use_norm),
            "profile a100-sxm-80gb has no norm of \"slow\"; available: default, persistent");
  EXPECT_EQ(
      refusal(use_attention),
      "profile a100-sxm-80gb has no attention of \"slow\"; available: default, flash-1, flash-2, triton");
}

}  // namespace
}  // namespace rehearse
