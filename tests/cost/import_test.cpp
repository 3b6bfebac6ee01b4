#include "calibrate/import/import.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "calibrate/import/carry_over.h"
#include "calibrate/import/profile_json.h"
#include "cost/profile.h"

namespace rehearse {
namespace {

const std::string kCalibrate = SOURCE_DIR "/calibrate";

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Json recipe_of(const std::string& name) {
  return read_json_file(kCalibrate + "/recipes/" + name + ".json");
}

class Import : public testing::TestWithParam<const char*> {};

TEST_P(Import, MakesTheCommittedProfileByteForByte) {
  const std::string name = GetParam();
  const JsonReader recipe(recipe_of(name), name);
  EXPECT_EQ(to_text(import_profile(recipe, kCalibrate + "/data")),
            text_of(kCalibrate + "/profiles/" + name + ".json"));
}

INSTANTIATE_TEST_SUITE_P(Profiles, Import,
                         testing::Values("a100-sxm-80gb", "a100-sxm-40gb", "a100-pcie-80gb", "v100-sxm",
                                         "v100-sxm3", "h100-sxm", "h100-96gb-500w", "h200-sxm", "b200-sxm",
                                         "gb200", "b300-sxm", "gb300", "cpu-generic"));

// Twice the memory bandwidth halves the time of memory-bound GEMMs, and does not change compute-bound ones.
TEST(CarryOver, KeepsEachProductsShareOfTheRoofline) {
  Json recipe = recipe_of("h200-sxm");
  recipe["gpu"]["memory_bandwidth"] = 2 * 3.35e12;
  recipe["reached"] = {{"fp16", {{"base", 700e12}, {"own", 700e12}}}};
  const Json base = {{"gpu", {{"memory_bandwidth", 3.35e12}}},
                     {"sources", Json::array()},
                     {"gemm", {{"fp16", {{"rows", {{8192, 8192, 8192, 2e-3}, {1, 8192, 8192, 1e-4}}}}}}},
                     {"stream", {{"copy", {{"rows", {{1e9, 2e12}}}}}}},
                     {"attention", {{"rows", {{128, 2048, 1, 0, 3e14}}}}}};
  const Json profile = carry_over(JsonReader(recipe, "recipe"), base);
  EXPECT_DOUBLE_EQ(profile["gemm"]["fp16"]["rows"][0][3], 2e-3);
  EXPECT_DOUBLE_EQ(profile["gemm"]["fp16"]["rows"][1][3], 0.5e-4);
  EXPECT_DOUBLE_EQ(profile["stream"]["copy"]["rows"][0][1], 4e12);
  EXPECT_DOUBLE_EQ(profile["attention"]["rows"][0][4], 3e14);
}

TEST(CarryOver, StreamsOfTheGpuItselfStandInPlaceOfCarriedOnes) {
  const Json profile =
      import_profile(JsonReader(recipe_of("b200-sxm"), "recipe"), kCalibrate + "/data").at("stream");
  EXPECT_DOUBLE_EQ(profile["permute"]["rows"][0][1], 1.6e12);
  const Json h100 =
      import_profile(JsonReader(recipe_of("h100-sxm"), "recipe"), kCalibrate + "/data").at("stream");
  EXPECT_NEAR(profile["scatter_add"]["rows"][0][1].get<double>() / 8e12,
              h100["scatter_add"]["rows"][0][1].get<double>() / 3.35e12, 1e-4);
}

// Faster tensor cores do not help kernels that load an element at a time; slower ones hold them up too.
TEST(CarryOver, MisalignedProductsGainNothingFromFasterTensorCores) {
  Json recipe = recipe_of("h200-sxm");
  recipe["gpu"]["memory_bandwidth"] = 3.35e12;
  const Json rows = {{"rows", {{8192, 8192, 8191, 8e-3}}}};
  const Json base = {{"gpu", {{"memory_bandwidth", 3.35e12}}},
                     {"sources", Json::array()},
                     {"gemm", {{"fp16", rows}, {"fp16/align1", rows}}},
                     {"stream", Json::object()},
                     {"attention", {{"rows", Json::array()}}}};
  const auto seconds_at = [&](double own) {
    recipe["reached"] = {{"fp16", {{"base", 700e12}, {"own", own}}}};
    const Json gemm = carry_over(JsonReader(recipe, "recipe"), base)["gemm"];
    return std::pair(gemm["fp16"]["rows"][0][3].get<double>(),
                     gemm["fp16/align1"]["rows"][0][3].get<double>());
  };
  EXPECT_EQ(seconds_at(1400e12), std::pair(4e-3, 8e-3));
  EXPECT_EQ(seconds_at(350e12), std::pair(16e-3, 16e-3));
}

TEST(CarryOver, RefusesPrecisionsThatTheBaseHasNoProductsOf) {
  Json recipe = recipe_of("a100-sxm-40gb");
  recipe["reached"]["fp8"] = {{"base", 1e15}, {"own", 1e15}};
  EXPECT_THROW(import_profile(JsonReader(recipe, "recipe"), kCalibrate + "/data"), InputError);
}

TEST(ImportRecipe, WithAnUnknownKeyIsRefused) {
  Json recipe = recipe_of("cpu-generic");
  recipe["speed"] = 1;
  EXPECT_THROW(import_profile(JsonReader(recipe, "recipe"), kCalibrate + "/data"), InputError);
}

TEST(ImportRecipe, WithAMissingTableIsRefused) {
  Json recipe = recipe_of("a100-sxm-80gb");
  recipe["gemm"][0]["file"] = "gemm/none.json";
  EXPECT_THROW(import_profile(JsonReader(recipe, "recipe"), kCalibrate + "/data"), InputError);
}

TEST(ImportRecipe, WithoutAFieldOfItsFormatIsRefused) {
  Json recipe = recipe_of("cpu-generic");
  recipe["gemm"][0].erase("sides");
  EXPECT_THROW(import_profile(JsonReader(recipe, "recipe"), kCalibrate + "/data"), InputError);
}

// The best rates of the H100 table, up to 894 TFLOPS, belong to low-entropy data.
TEST(ImportRecipe, HoldsRatesToWhatRandomDataReach) {
  Json recipe = recipe_of("h100-sxm");
  const auto gemms = [&] {
    const Json profile = import_profile(JsonReader(recipe, "recipe"), kCalibrate + "/data");
    return profile.at("gemm").at("fp16").at("rows");
  };
  const Json held = gemms();
  recipe["gemm"][0].erase("most_tflops");
  const Json raw = gemms();
  ASSERT_EQ(held.size(), raw.size());
  int above = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const double flops = 2.0 * raw[i][0].get<double>() * raw[i][1].get<double>() * raw[i][2].get<double>();
    const double rate = flops / raw[i][3].get<double>();
    EXPECT_NEAR(flops / held[i][3].get<double>(), std::min(rate, 794.5e12), 2e-3 * rate) << raw[i];
    above += rate > 794.5e12 ? 1 : 0;
  }
  EXPECT_GT(above, 0);
  EXPECT_LT(above, 60);
}

}  // namespace
}  // namespace rehearse
