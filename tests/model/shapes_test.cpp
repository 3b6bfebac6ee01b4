// Files whose layers differ in size: supported and refused ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_file.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Json published(const std::string& name) {
  for (const Json& row : read_json_file(SOURCE_DIR "/tests/model/published_models.json"))
    if (row["name"] == name) return row["config"];
  throw std::runtime_error("no published model " + name);
}

TEST(Shapes, WindowedLayersMayHaveOtherHeads) {
  const Model model = read_config(published("mimo-v2-flash"));
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_FALSE(model.attention_sinks);
  EXPECT_EQ(model.window_of(0), 0);
  ASSERT_EQ(model.shapes.size(), 1u);
  EXPECT_EQ(model.shapes[0].kv_heads, 8);
  EXPECT_EQ(model.shapes[0].v_head_dim, 128);
  EXPECT_TRUE(model.shapes[0].attention_sinks);
  EXPECT_EQ(model.window_of(1), 128);
  EXPECT_EQ(model.shape_of(1), 1);
}

TEST(Shapes, LayersOfPuzzleMayLackAttention) {
  const Model model = read_config(published("nemotron-super-49b-v1"));
  EXPECT_EQ(model.layers, 80 + 49);
  EXPECT_EQ(std::ranges::count(model.pattern, '*'), 49);
  Json config = published("nemotron-super-49b-v1");
  config["block_configs"][3]["ffn"]["replace_with_linear"] = true;
  EXPECT_THAT(complaint(config.dump()), AllOf(HasSubstr("/block_configs/3/ffn/replace_with_linear"),
                                              HasSubstr("nothing here costs it")));
}

TEST(Shapes, ListsHaveAnEntryForEachLayer) {
  Json config = published("openelm-270m");
  config["num_kv_heads"].erase(0);
  EXPECT_THAT(complaint(config.dump()),
              AllOf(HasSubstr("/num_kv_heads: must have an entry for each layer"), HasSubstr("15 entries")));
  config = published("openelm-270m");
  config["ffn_multipliers"] = {0.5, 4.0};
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/ffn_multipliers: must have an entry for each layer"));
}

TEST(Shapes, KeysMayStandForManyTokens) {
  const Model model = read_config(published("deepseek-v4-flash"));
  EXPECT_EQ(model.streams, 4);
  EXPECT_EQ(model.compression, 0);
  EXPECT_EQ(model.shapes[static_cast<std::size_t>(model.shape_of(2) - 1)].compression, 4);
  EXPECT_TRUE(model.shapes[static_cast<std::size_t>(model.shape_of(2) - 1)].hashes_experts);
  EXPECT_EQ(model.shapes[static_cast<std::size_t>(model.shape_of(3) - 1)].compression, 128);
  Json config = published("deepseek-v4-flash");
  Json types = Json::array();
  for (const Json& ratio : config["compress_ratios"])
    if (types.size() < 43)
      types.push_back(ratio == 0   ? "sliding_attention"
                      : ratio == 4 ? "compressed_sparse_attention"
                                   : "heavily_compressed_attention");
  config.erase("compress_ratios");
  config["layer_types"] = types;
  EXPECT_EQ(count_parameters(read_config(config)).total, count_parameters(model).total);
  config["layer_types"][5] = "full_attention";
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/layer_types/5: must be sliding_attention"));
}

// A rule that only the class knows would count an indexer in every layer.
TEST(Shapes, LayersThatScoreKeysMustBeNamed) {
  Json config = published("glm-5");
  config["index_topk_freq"] = 4;
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/index_topk_freq: must stand beside indexer_types"));
  config["index_topk_freq"] = 1;
  EXPECT_EQ(complaint(config.dump()), "");
}

TEST(Shapes, LatentAttentionMayBeSwitchedOff) {
  Json config = published("deepseek-v2-lite");
  config["use_mla"] = false;
  config["kv_lora_rank"] = nullptr;
  config["num_key_value_heads"] = 16;
  EXPECT_FALSE(read_config(config).latent);
}

TEST(Shapes, PartsThatAreNotCostedAreNamed) {
  const Model gemma = read_config(published("gemma-3n-e4b"));
  EXPECT_THAT(gemma.not_modelled, Contains("num_kv_shared_layers"));
  EXPECT_THAT(gemma.warnings, Contains(HasSubstr("are costed with their own")));
  Json config = published("dbrx-132b");
  config["attn_config"]["clip_qkv"] = 8;
  EXPECT_THAT(read_config(config).warnings, ElementsAre(HasSubstr("the clamp of queries, keys and values")));
}

TEST(Shapes, EncodersAndDecodersMayHaveDifferentDepths) {
  Json config = published("t5-small");
  const std::int64_t both = count_parameters(read_config(config)).total;
  config["num_decoder_layers"] = 3;
  const Model model = read_config(config);
  EXPECT_EQ(model.encoder_layers, 6);
  EXPECT_EQ(model.layers, 9);
  const ParameterCount count = count_parameters(model);
  EXPECT_EQ(both - count.total, 3 * (count.attention + count.cross + count.norms + count.mlp));
}

}  // namespace
}  // namespace rehearse
