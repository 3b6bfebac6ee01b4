// Invalid profiles are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cost/read_profile.h"

namespace rehearse {
namespace {

Json good() {
  return read_json_file(SOURCE_DIR "/calibrate/profiles/cpu-generic.json");
}

// The pointer and the rule that the changed profile breaks.
std::string broken(const std::function<void(Json&)>& change) {
  Json json = good();
  change(json);
  try {
    parse_profile(JsonReader(json, "profile.json"));
  } catch (const InputError& error) {
    const Violation& violation = error.violations().front();
    return violation.pointer + ": " + violation.rule + " (" + violation.values + ")";
  }
  return "accepted";
}

using testing::StartsWith;

TEST(BadProfile, TheUnchangedOneIsGood) {
  EXPECT_EQ(broken([](Json&) {}), "accepted");
}

TEST(BadProfile, OfAnotherSchema) {
  EXPECT_THAT(broken([](Json& json) { json["schema"] = "rehearse.profile/2"; }), StartsWith("/schema: "));
}

TEST(BadProfile, WithAnUnknownKey) {
  EXPECT_THAT(broken([](Json& json) { json["spede"] = 1; }), StartsWith("/spede: is not a known key"));
}

TEST(BadProfile, WithAGemmAbovePeak) {
  EXPECT_THAT(broken([](Json& json) {
                json["gemm"]["fp32"]["rows"][7] = {1000, 1000, 1000, 2e9 / 288.1e9};
              }),
              StartsWith("/gemm/fp32/rows/7: a GEMM above peak"));
}

TEST(BadProfile, WithANegativeTime) {
  EXPECT_THAT(broken([](Json& json) { json["gemm"]["fp32"]["rows"][0][3] = -1e-6; }),
              StartsWith("/gemm/fp32/rows/0/3 (seconds): must be a number from"));
}

TEST(BadProfile, WithAFractionalShape) {
  EXPECT_THAT(broken([](Json& json) { json["gemm"]["fp32"]["rows"][0][0] = 1.5; }),
              StartsWith("/gemm/fp32/rows/0: sizes must be whole"));
}

TEST(BadProfile, WithARowThatIsTooShort) {
  EXPECT_THAT(broken([](Json& json) { json["stream"]["copy"]["rows"][0] = {1}; }),
              StartsWith("/stream/copy/rows/0: must hold 2 numbers"));
}

TEST(BadProfile, WithColumnsInAnotherOrder) {
  EXPECT_THAT(broken([](Json& json) {
                json["stream"]["copy"]["columns"] = {"bytes_per_s", "bytes"};
              }),
              StartsWith("/stream/copy/columns: "));
}

TEST(BadProfile, WithoutColumns) {
  EXPECT_THAT(broken([](Json& json) { json["stream"]["copy"].erase("columns"); }),
              StartsWith("/stream/copy/columns: is required"));
}

TEST(BadProfile, WithAStreamAboveTheMemory) {
  EXPECT_THAT(broken([](Json& json) { json["stream"]["copy"]["rows"][0][1] = 101e9; }),
              StartsWith("/stream/copy/rows/0: "));
}

TEST(BadProfile, WithStreamsOutOfOrder) {
  EXPECT_THAT(broken([](Json& json) {
                json["stream"]["copy"]["rows"] = {{2, 1e9}, {1, 1e9}};
              }),
              StartsWith("/stream/copy/rows/1: bytes must grow"));
}

TEST(BadProfile, WithAttentionAbovePeak) {
  EXPECT_THAT(broken([](Json& json) { json["attention"]["rows"][3][4] = 289e9; }),
              StartsWith("/attention/rows/3: "));
}

TEST(BadProfile, WithAnEfficiencyAboveOne) {
  EXPECT_THAT(broken([](Json& json) { json["links"][0]["efficiency"] = 1.1; }),
              StartsWith("/links/0/efficiency: "));
}

TEST(BadProfile, WithAnUnknownLinkOp) {
  EXPECT_THAT(broken([](Json& json) { json["links"][0]["op"] = "rings"; }), StartsWith("/links/0/op: "));
}

TEST(BadProfile, WithAPrecisionThatHasNoPeak) {
  EXPECT_THAT(broken([](Json& json) { json["gemm"]["fp8"] = json["gemm"]["fp32"]; }),
              StartsWith("/gemm/fp8: needs a peak"));
}

TEST(BadProfile, WithGpusFurtherApartThanAFifth) {
  EXPECT_THAT(broken([](Json& json) {
                json["gpu_spread"] = {{"deviation", 0.3}, {"source", "none"}};
              }),
              StartsWith("/gpu_spread/deviation: "));
}

TEST(BadProfile, WithMoreOfSumsHiddenThanAll) {
  EXPECT_THAT(broken([](Json& json) {
                json["hidden_sums"] = {{"share", 1.1}, {"source", "none"}};
              }),
              StartsWith("/hidden_sums/share: "));
}

TEST(BadProfile, WithProductsOfBlocksFasterThanOthers) {
  EXPECT_THAT(broken([](Json& json) {
                json["fp8_blocks"] = {{"times", 0.9}, {"source", "none"}};
              }),
              StartsWith("/fp8_blocks/times: "));
  EXPECT_THAT(broken([](Json& json) { json["fp8_blocks"] = {{"times", 1.1}}; }), StartsWith("/fp8_blocks"));
}

TEST(BadProfile, WithoutSources) {
  EXPECT_THAT(broken([](Json& json) { json["sources"] = Json::array(); }), StartsWith("/sources: "));
}

TEST(BadProfile, SlowerInCompanyThanWhatItHolds) {
  Json json = read_json_file(SOURCE_DIR "/calibrate/profiles/h100-quarters.json");
  json["measurement"]["in_company"]["gemm"]["bf17"] = 1.1;
  try {
    parse_profile(JsonReader(json, "profile.json"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.violations().front().pointer, "/measurement/in_company/gemm/bf17");
    EXPECT_THAT(error.violations().front().nearest, testing::HasSubstr("bf16/input_gradient"));
  }
}

}  // namespace
}  // namespace rehearse
