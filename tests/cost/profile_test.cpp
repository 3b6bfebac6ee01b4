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
    EXPECT_EQ(error.violations().front().nearest, "h100-sxm");
  }
}

}  // namespace
}  // namespace rehearse
