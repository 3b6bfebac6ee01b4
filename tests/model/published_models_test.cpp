// Models of many families: their parameter counts to the last digit. Each row of published_models.json has a
// configuration's facts, the count and where it comes from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config_file.h"
#include "model/family.h"

namespace rehearse {
namespace {

Json published_models() {
  return read_json_file(SOURCE_DIR "/tests/model/published_models.json");
}

TEST(PublishedModels, CountAsTheirSourcesSay) {
  const Json rows = published_models();
  for (const Json& row : rows) {
    const std::string name = row["name"].get<std::string>();
    try {
      EXPECT_EQ(count_parameters(read_config(row["config"])).total, row["total"].get<std::int64_t>())
          << name << ": " << row["source"];
    } catch (const InputError& error) {
      ADD_FAILURE() << name << ": " << error.what();
    }
  }
}

// "hub": the safetensors total, or one with the difference explained. "published": a file that was read.
// "counted": a public class of another framework was built without weights, and its shapes were summed.
// "quoted": a public repository states the count. "computed": only the class implies it, and the source tells
// whether it was read.
TEST(PublishedModels, SayHowTheirCountIsKnown) {
  for (const Json& row : published_models())
    EXPECT_THAT(row["source"].get<std::string>(),
                testing::MatchesRegex("hub[,:] .+|published, .+ at [0-9a-f]{10}|"
                                      "counted by [a-z0-9_./-]+ of [A-Za-z-]+/[a-z-]+ at [0-9a-f]{10}(, less "
                                      ".+)?|(quoted by public repositories|computed); "
                                      "(class not read|.* of huggingface/transformers read at [0-9a-f]{10})"))
        << row["name"];
}

TEST(PublishedModels, AreOfManyFamilies) {
  const Json rows = published_models();
  std::set<std::string> types;
  for (const Json& row : rows) types.insert(row["config"]["model_type"].get<std::string>());
  EXPECT_GE(rows.size(), 60u);
  EXPECT_GE(types.size(), 30u);
}

// A row that is mistyped would be read over in silence.
TEST(Families, HaveKnownKeysOnly) {
  const std::set<std::string> known = {"class", "like",      "names",        "implied", "absent",  "only",
                                       "cases", "per_layer", "approximated", "reader",  "refused", "types"};
  const Json rows = read_json_file(SOURCE_DIR "/scenarios/families/hugging_face.json");
  for (const auto& [type, row] : rows.items()) {
    if (type.starts_with('_')) continue;
    for (const auto& [key, value] : row.items())
      EXPECT_TRUE(known.contains(key) || key.starts_with('_')) << type << ": " << key;
  }
}

TEST(Families, HaveAClassOrAreParts) {
  std::set<std::string> types;
  for (const ModelFamily& family : families()) EXPECT_TRUE(types.insert(family.model_type).second);
  EXPECT_GE(types.size(), 60u);
}

}  // namespace
}  // namespace rehearse
