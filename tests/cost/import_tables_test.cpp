// Tables and recipes that no one would publish.
#include "calibrate/import/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "calibrate/import/import.h"
#include "scratch.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kCalibrate = SOURCE_DIR "/calibrate";

std::string refusal(const Json& recipe, const std::filesystem::path& data) {
  try {
    import_profile(JsonReader(recipe, "recipe"), data);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

// The recipe of a CPU with its GEMMs out of data/table.json.
class Tables : public ::testing::Test {
 protected:
  Tables() : folder_(scratch().path()) {
    std::filesystem::create_directories(folder_ / "data");
    std::filesystem::create_directories(folder_ / "recipes");
    recipe_ = read_json_file((kCalibrate / "recipes/cpu-generic.json").string());
  }

  std::string refusal_of_row(const char* row) {
    std::ofstream(folder_ / "data/table.json")
        << R"({"source": {"title": "t"}, "columns": ["M", "N", "K", "time_us"], "rows": [[64, 64, 64, 10], )"
        << row << "]}";
    recipe_["gemm"] = Json::array(
        {{{"precision", "fp32"}, {"format", "vidur"}, {"file", "table.json"}, {"note", "measured"}}});
    return refusal(recipe_, folder_ / "data");
  }

  std::filesystem::path folder_;
  Json recipe_;
};

TEST_F(Tables, WithWholeRowsAreRead) {
  EXPECT_EQ(refusal_of_row("[128, 64, 64, 20]"), "none");
}

TEST_F(Tables, WithAShortRowAreRefused) {
  EXPECT_THAT(refusal_of_row("[128, 64]"), HasSubstr("lacks a field"));
}

TEST_F(Tables, WithWhatIsNoCountAreRefused) {
  for (const char* count : {"-1", "1.5", "1e13", "1e300"})
    EXPECT_THAT(refusal_of_row((std::string("[") + count + ", 64, 64, 20]").c_str()),
                HasSubstr("whole number"));
}

TEST_F(Tables, OfTimesThatAreNoneAreRefused) {
  for (const char* time : {"0", "-1", "1e308"})
    EXPECT_NE(refusal_of_row((std::string("[128, 64, 64, ") + time + "]").c_str()), "none") << time;
}

TEST_F(Tables, OfAPrecisionThatTheGpuLacksAreRefused) {
  recipe_["attention"]["precision"] = "fp8";
  EXPECT_THAT(refusal(recipe_, folder_ / "data"), HasSubstr("peak"));
}

TEST_F(Tables, OfMoreSidesThanMakeATableAreRefused) {
  for (int side = 1; side <= 40; ++side) recipe_["gemm"][0]["sides"].push_back(side);
  EXPECT_THAT(refusal(recipe_, folder_ / "data"), HasSubstr("/gemm/0/sides"));
}

TEST_F(Tables, OfRecipesThatAreLikeEachOtherAreRefused) {
  const Json gpu = recipe_["gpu"];
  for (const auto& [name, like] : {std::pair{"one", "other"}, std::pair{"other", "one"}})
    std::ofstream(folder_ / "recipes" / (std::string(name) + ".json")) << Json{{"like", like}, {"gpu", gpu}};
  EXPECT_THAT(refusal(read_json_file((folder_ / "recipes/one.json").string()), folder_ / "data"),
              HasSubstr("circle"));
}

TEST(Rounded, KeepsFourDigitsOfAnyNumber) {
  EXPECT_DOUBLE_EQ(rounded(123456), 123500);
  EXPECT_DOUBLE_EQ(rounded(1.23456e-5), 1.235e-5);
  EXPECT_NEAR(rounded(3e-320), 3e-320, 1e-322);  // less precise than normal numbers
  EXPECT_EQ(rounded(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace rehearse
