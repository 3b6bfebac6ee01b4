#include "sweep/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/error.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Values, ListsAreTakenAsTheyStand) {
  EXPECT_THAT(parse_values("--mbs", "1,2,4", false), ElementsAre("1", "2", "4"));
  EXPECT_THAT(parse_values("--mbs", "8", false), ElementsAre("8"));
  EXPECT_THAT(parse_values("--schedule", "1f1b,zb-h1", false), ElementsAre("1f1b", "zb-h1"));
}

TEST(Values, RangesCountUpByStepsOrFactors) {
  EXPECT_THAT(parse_values("--pp", "2:32:*2", false), ElementsAre("2", "4", "8", "16", "32"));
  EXPECT_THAT(parse_values("--pp", "2:31:*2", false), ElementsAre("2", "4", "8", "16"));
  EXPECT_THAT(parse_values("--gbs", "256:1024:+256", false), ElementsAre("256", "512", "768", "1024"));
  EXPECT_THAT(parse_values("--pp", "2:4", false), ElementsAre("2", "3", "4"));
  EXPECT_THAT(parse_values("--pp", "5:5", false), ElementsAre("5"));
  EXPECT_THAT(parse_values("--pp", "1,4:6,8:16:*2", false), ElementsAre("1", "4", "5", "6", "8", "16"));
}

TEST(Values, RangesOfFractionsMeetTheirEnd) {
  EXPECT_THAT(parse_values("--moe-imbalance", "1:1.3:+0.1", false), ElementsAre("1", "1.1", "1.2", "1.3"));
  EXPECT_THAT(parse_values("--moe-imbalance", "0.5:4:*2", false), ElementsAre("0.5", "1", "2", "4"));
}

TEST(Values, TextsWithCommasAreDividedBySemicolons) {
  EXPECT_THAT(parse_values("--layers-per-stage", "10,14;12,12;auto", true),
              ElementsAre("10,14", "12,12", "auto"));
  EXPECT_THAT(parse_values("--slow", "rank=17:0.8", true), ElementsAre("rank=17:0.8"));
}

TEST(Values, TextsWithColonsAreNoRanges) {
  EXPECT_THAT(parse_values("--model", "a:b,c:d:e", false), ElementsAre("a:b", "c:d:e"));
}

TEST(Values, RangesThatNeverEndAreRefused) {
  for (const char* text :
       {"1:8:+0", "1:8:*1", "0:8:*2", "-1:8:*2", "1:8:+-1", "1:2:+0.0", "8:1", "1:3000000"})
    EXPECT_THROW(parse_values("--pp", text, false), InputError) << text;
}

TEST(Values, EmptyAndDoubleItemsAreRefused) {
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1,2,1", "1:4,3"})
    EXPECT_THROW(parse_values("--pp", text, false), InputError) << text;
}

TEST(Values, RangesNearTheLargestNumberEnd) {
  EXPECT_THAT(parse_values("--gbs", "4611686018427387904:9223372036854775807:*2", false),
              ElementsAre("4611686018427387904"));
  EXPECT_THAT(parse_values("--gbs", "9223372036854775806:9223372036854775807", false),
              ElementsAre("9223372036854775806", "9223372036854775807"));
}

TEST(Values, RangesOverAllIntegersEnd) {
  const std::string least = "-9223372036854775808", most = "9223372036854775807";
  EXPECT_EQ(parse_values("x", least + ":" + most + ":+" + most, false),
            (std::vector<std::string>{least, "-1", "9223372036854775806"}));
}

TEST(Values, WhatIsNoNumberMakesNoRange) {
  EXPECT_EQ(parse_values("x", "nan:2", false), std::vector<std::string>{"nan:2"});
  EXPECT_EQ(parse_values("x", "1:inf", false), std::vector<std::string>{"1:inf"});
}

TEST(Values, EveryValueOfARangeLiesInItAndStepsAreEqual) {
  rc::check([] {
    const int from = *rc::gen::inRange(-1000, 1000), length = *rc::gen::inRange(0, 500);
    const int step = *rc::gen::inRange(1, 50);
    const auto values = parse_values(
        "x", std::to_string(from) + ":" + std::to_string(from + length) + ":+" + std::to_string(step), false);
    RC_ASSERT(values.size() == static_cast<std::size_t>(length / step + 1));
    for (std::size_t i = 0; i < values.size(); ++i)
      RC_ASSERT(values[i] == std::to_string(from + static_cast<int>(i) * step));
  });
}

}  // namespace
}  // namespace rehearse
