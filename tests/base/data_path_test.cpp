#include "base/data_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "scratch.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

class DataPath : public testing::Test {
 protected:
  void SetUp() override {
    root_ = scratch().path();
    fs::create_directories(root_ / "things");
    for (const char* name : {"beta.json", "alpha.json", "notes.txt"})
      std::ofstream(root_ / "things" / name) << "{}";
    setenv("REHEARSE_DATA", root_.c_str(), 1);
  }
  void TearDown() override { unsetenv("REHEARSE_DATA"); }

  fs::path root_;
};

TEST_F(DataPath, NamesAreTheSortedStemsOfJsonFiles) {
  EXPECT_EQ(data_directory(), root_);
  EXPECT_THAT(data_names("things"), testing::ElementsAre("alpha", "beta"));
  EXPECT_TRUE(data_names("nothing").empty());
}

TEST_F(DataPath, NameLeadsToTheShippedFile) {
  EXPECT_EQ(find_data_file("thing", "things", "beta"), (root_ / "things" / "beta.json").string());
}

TEST_F(DataPath, WhatLooksLikeAPathIsOne) {
  const std::string file = (root_ / "things" / "alpha.json").string();
  EXPECT_EQ(find_data_file("thing", "elsewhere", file), file);
  EXPECT_THROW(find_data_file("thing", "things", "beta.json"), InputError);
  EXPECT_THROW(find_data_file("thing", "things", (root_ / "things").string() + "/"), InputError);
}

TEST_F(DataPath, UnknownNameSaysWhichAreKnownAndTheNearest) {
  try {
    find_data_file("thing", "things", "alpa");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no such thing; known are alpha, beta"));
    EXPECT_EQ(error.violations().front().nearest, "alpha");
  }
}

TEST_F(DataPath, MissingDataSaysWhereItWasLookedForAndWhatSetsIt) {
  setenv("REHEARSE_DATA", (root_ / "gone").c_str(), 1);
  try {
    find_data_file("thing", "things", "alpha");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr((root_ / "gone").string()));
    EXPECT_THAT(error.violations().front().nearest, testing::HasSubstr("REHEARSE_DATA=FOLDER"));
  }
}

TEST_F(DataPath, LongListOfNamesIsLeftToTheVerbThatPrintsIt) {
  for (const char letter : std::string("abcdefghijklm"))
    std::ofstream(root_ / "things" / (std::string("name-") + letter + ".json")) << "{}";
  try {
    find_data_file("thing", "things", "alpa");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.violations().front().rule, "no such thing; `rehearse list things` names all 15");
    EXPECT_EQ(error.violations().front().nearest, "alpha");
  }
}

TEST(DataDirectory, IsTheSourceTreeWhereNothingIsInstalled) {
  unsetenv("REHEARSE_DATA");
  EXPECT_EQ(data_directory(), fs::path(SOURCE_DIR));
}

}  // namespace
}  // namespace rehearse
