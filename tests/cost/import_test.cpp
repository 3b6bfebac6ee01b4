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

// The best rate of the H100 table belongs to low-entropy data: 894 TFLOPS on zeros, 788 on random data.
TEST(ImportRecipe, SlowsComputeBoundShapesOfLowEntropyDataOnly) {
  Json recipe = recipe_of("h100-sxm");
  const auto gemms = [&] {
    const Json profile = import_profile(JsonReader(recipe, "recipe"), kCalibrate + "/data");
    return profile.at("gemm").at("fp16").at("rows");
  };
  const Json corrected = gemms();
  recipe["gemm"][0].erase("low_entropy");
  const Json raw = gemms();
  ASSERT_EQ(corrected.size(), raw.size());
  int slowed = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const double m = raw[i][0], n = raw[i][1], k = raw[i][2];
    const double intensity = m * n * k / (m * k + k * n + m * n);
    const bool compute_bound = intensity > 989e12 / 3.35e12;
    const double ratio = corrected[i][3].get<double>() / raw[i][3].get<double>();
    EXPECT_NEAR(ratio, compute_bound ? 894.0 / 788 : 1, 2e-3) << raw[i];
    slowed += compute_bound ? 1 : 0;
  }
  EXPECT_GT(slowed, 500);
  EXPECT_LT(slowed, static_cast<int>(raw.size()) - 500);
}

}  // namespace
}  // namespace rehearse
