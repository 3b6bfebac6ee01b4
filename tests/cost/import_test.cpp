#include "calibrate/import/import.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

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

INSTANTIATE_TEST_SUITE_P(Profiles, Import, testing::Values("a100-sxm-80gb", "h100-sxm", "cpu-generic"));

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
