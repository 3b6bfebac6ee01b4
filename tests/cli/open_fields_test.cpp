// A row that leaves something open stands for every run that it may be.
#include "cli/open_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace {

using ::testing::ElementsAre;

const Json kOpenRow = Json::parse(R"({"model": {"layers": 24, "hidden": 2048, "heads": 16}, "recompute": null,
  "batch": {"micro": null, "global": 96}, "parallel": {"tp": 2, "pp": 4, "vpp": null, "dp": 8}})");

std::vector<Json> values_of_open(const Json& row, const char* field, const char* pointer) {
  std::vector<Json> all;
  for (const Json& candidate : candidates_of(row, {field}))
    all.push_back(candidate.at(Json::json_pointer(pointer)));
  return all;
}

TEST(OpenFields, ARowThatSaysEverythingIsItself) {
  EXPECT_THAT(candidates_of(kOpenRow, {}), ElementsAre(kOpenRow));
}

TEST(OpenFields, TakeEachValueThatIsLegal) {
  EXPECT_THAT(values_of_open(kOpenRow, "recompute", "/recompute"), ElementsAre("none", "selective", "full"));
  EXPECT_THAT(values_of_open(kOpenRow, "batch.micro", "/batch/micro"), ElementsAre(1, 2, 4));    // of 12
  EXPECT_THAT(values_of_open(kOpenRow, "parallel.vpp", "/parallel/vpp"), ElementsAre(2, 3, 6));  // of 6 layers
  EXPECT_THAT(values_of_open(kOpenRow, "model.heads", "/model/heads"), ElementsAre(32, 16, 8));  // 64 to 256 wide
}

TEST(OpenFields, CountTheEndsAsLayersWhereTheRowDividesItsLayersSo) {
  Json row = kOpenRow;
  row["model"]["layers"] = 30;
  EXPECT_TRUE(values_of_open(row, "parallel.vpp", "/parallel/vpp").empty());
  row["parallel"]["layer_split"] = "(layers+2)/(pp*vpp)";
  EXPECT_THAT(values_of_open(row, "parallel.vpp", "/parallel/vpp"), ElementsAre(2, 4, 8));
}

TEST(OpenFields, AreCombined) {
  EXPECT_EQ(candidates_of(kOpenRow, {"recompute", "batch.micro", "parallel.vpp"}).size(), 27U);
}

TEST(OpenFields, AreNoneWhereNobodyCanTell) {
  EXPECT_TRUE(candidates_of(kOpenRow, {"recompute", "parallel.pp"}).empty());
  Json row = kOpenRow;
  row["batch"].erase("global");
  EXPECT_TRUE(candidates_of(row, {"batch.micro"}).empty());
  row["model"]["layers"] = 1e15;
  EXPECT_LT(candidates_of(row, {"parallel.vpp"}).size(), 64U);
}

}  // namespace
}  // namespace rehearse
