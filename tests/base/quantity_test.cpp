#include "base/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>

#include "base/bounds.h"

namespace rehearse {
namespace {

TEST(Units, BitsAndBytesAreToldApart) {
  EXPECT_DOUBLE_EQ(*parse_quantity("400Gbps", Dimension::bytes_per_second), 50e9);
  EXPECT_DOUBLE_EQ(*parse_quantity("400GB/s", Dimension::bytes_per_second), 400e9);
  EXPECT_FALSE(parse_quantity("400Gb/s", Dimension::bytes_per_second));
  EXPECT_FALSE(parse_quantity("400GBps", Dimension::bytes_per_second));
  EXPECT_FALSE(parse_quantity("400Gbps", Dimension::bytes));
}

TEST(Units, PowersOf1000And1024AreToldApart) {
  EXPECT_DOUBLE_EQ(*parse_quantity("1MB", Dimension::bytes), 1e6);
  EXPECT_DOUBLE_EQ(*parse_quantity("1MiB", Dimension::bytes), 1048576);
  EXPECT_DOUBLE_EQ(*parse_quantity("2GiB/s", Dimension::bytes_per_second), 2147483648);
}

TEST(Units, EveryUnitHasItsScale) {
  EXPECT_DOUBLE_EQ(*parse_quantity("2.5us", Dimension::seconds), 2.5e-6);
  EXPECT_DOUBLE_EQ(*parse_quantity("7ns", Dimension::seconds), 7e-9);
  EXPECT_DOUBLE_EQ(*parse_quantity("10 ms", Dimension::seconds), 10e-3);
  EXPECT_DOUBLE_EQ(*parse_quantity("989TFLOPS", Dimension::flops), 989e12);
  EXPECT_DOUBLE_EQ(*parse_quantity("1.5PFLOPS", Dimension::flops), 1.5e15);
}

TEST(Units, OnlyZeroNeedsNoUnit) {
  EXPECT_EQ(parse_quantity("0", Dimension::seconds), 0.0);
  EXPECT_FALSE(parse_quantity("1", Dimension::seconds));
  EXPECT_FALSE(parse_quantity("50", Dimension::bytes_per_second));
}

class NoQuantity : public testing::TestWithParam<const char*> {};

TEST_P(NoQuantity, IsRefused) {
  for (const Dimension dimension :
       {Dimension::bytes, Dimension::bytes_per_second, Dimension::seconds, Dimension::flops}) {
    EXPECT_FALSE(parse_quantity(GetParam(), dimension)) << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(Texts, NoQuantity,
                         testing::Values("", " ", "nan", "nanGB", "inf", "infs", "1e400", "1e400B", "GB",
                                         "B/s", "1e", "--1s", "0x10B", "1,5s", "1GB GB", "12 parsecs", "1gb",
                                         "1S"));

RC_GTEST_PROP(Units, BytesSurviveWritingAndReading, ()) {
  const double bytes = *rc::gen::inRange(1, 999);
  const std::string text = format_bytes(bytes * 1e9);
  RC_ASSERT(*parse_quantity(text, Dimension::bytes) == bytes * 1e9);
}

RC_GTEST_PROP(Units, RatesSurviveWritingAndReading, ()) {
  const double rate = *rc::gen::inRange(1, 999);
  const double scale = std::pow(10.0, 3 * *rc::gen::inRange(0, 5));
  const double read = *parse_quantity(format_rate(rate * scale), Dimension::bytes_per_second);
  RC_ASSERT(std::abs(read - rate * scale) <= 1e-12 * read);
}

RC_GTEST_PROP(Units, SecondsSurviveWritingAndReading, ()) {
  const double microseconds = *rc::gen::inRange(1, 9999);
  const double scale = std::pow(10.0, *rc::gen::inRange(0, 7));
  const double seconds = microseconds * scale * 1e-6;
  const double read = *parse_quantity(format_seconds(seconds), Dimension::seconds);
  RC_ASSERT(std::abs(read - seconds) <= 5e-4 * seconds);
}

TEST(Units, WrittenWithThreeDigits) {
  EXPECT_EQ(format_bytes(12.34e9), "12.3 GB");
  EXPECT_EQ(format_rate(450e9), "450 GB/s");
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
}

TEST(Decimal, IsTheWholeTextAndFinite) {
  EXPECT_EQ(parse_decimal("12.5e3"), 12500);
  for (const char* text : {"0x1p3", "inf", "nan", "1e400", "3 us", "", " 3", "1,000"})
    EXPECT_FALSE(parse_decimal(text)) << text;
}

TEST(Quantity, OfEveryBoundIsReadAsItIsWritten) {
  for (const Bounds& bounds : {physical::kBandwidth, physical::kFlops, physical::kMemory, physical::kLatency,
                               physical::kBytes, physical::kDuration})
    for (const double value : {bounds.least, bounds.most}) {
      const auto read = parse_quantity(format_quantity(value, bounds.dimension), bounds.dimension);
      ASSERT_TRUE(read) << format_quantity(value, bounds.dimension);
      EXPECT_NEAR(*read, value, 1e-9 * value);
    }
}

}  // namespace
}  // namespace rehearse
