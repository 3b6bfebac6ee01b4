// Towers of multimodal models: their parameters to the last digit, and the notes on omitted towers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_file.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct KnownTower {
  const char* name;
  std::int64_t text_width;
  Json wrapper;  // the wrapper's keys without the language model
  std::int64_t parameters;
  std::int64_t image_tokens;
};

void PrintTo(const KnownTower& known, std::ostream* out) {
  *out << known.name;
}

Json qwen2_5_vision() {
  return {{"depth", 32},
          {"hidden_act", "silu"},
          {"hidden_size", 1280},
          {"intermediate_size", 3420},
          {"num_heads", 16},
          {"out_hidden_size", 3584},
          {"patch_size", 14},
          {"spatial_merge_size", 2},
          {"temporal_patch_size", 2},
          {"window_size", 112},
          {"fullatt_block_indexes", {7, 15, 23, 31}}};
}

// Totals of safetensors on the hub, less the language model.
std::vector<KnownTower> known_towers() {
  return {
      // Qwen/Qwen3-VL-8B-Instruct: 8767123696 - 8190735360
      {"Qwen3VL",
       4096,
       {{"vision_config",
         {{"depth", 27},
          {"hidden_size", 1152},
          {"intermediate_size", 4304},
          {"num_heads", 16},
          {"in_channels", 3},
          {"patch_size", 16},
          {"temporal_patch_size", 2},
          {"spatial_merge_size", 2},
          {"out_hidden_size", 4096},
          {"num_position_embeddings", 2304},
          {"deepstack_visual_indexes", {8, 16, 24}}}}},
       576'388'336,
       0},
      // Qwen/Qwen2.5-VL-7B-Instruct: 8292166656 - 7615616512
      {"Qwen2_5VL", 3584, {{"vision_config", qwen2_5_vision()}}, 676'550'144, 0},
      // Qwen/Qwen2-VL-7B-Instruct: 8291375616 - 7615616512. hidden_size is the language model's.
      {"Qwen2VL",
       3584,
       {{"vision_config",
         {{"depth", 32},
          {"embed_dim", 1280},
          {"mlp_ratio", 4},
          {"num_heads", 16},
          {"in_chans", 3},
          {"hidden_size", 3584},
          {"patch_size", 14},
          {"spatial_merge_size", 2},
          {"spatial_patch_size", 14},
          {"temporal_patch_size", 2}}}},
       675'759'104,
       0},
      // mistralai/Mistral-Small-3.1-24B-Instruct-2503: 24011361280 - 23572403200
      {"Mistral3",
       5120,
       {{"model_type", "mistral3"},
        {"spatial_merge_size", 2},
        {"multimodal_projector_bias", false},
        {"vision_config",
         {{"model_type", "pixtral"},
          {"num_hidden_layers", 24},
          {"hidden_size", 1024},
          {"intermediate_size", 4096},
          {"num_attention_heads", 16},
          {"hidden_act", "silu"},
          {"image_size", 1540},
          {"patch_size", 14}}}},
       438'958'080,
       0},
      // google/gemma-3-4b-it: 4300079472 - 3880263168
      {"Gemma3",
       2560,
       {{"model_type", "gemma3"},
        {"mm_tokens_per_image", 256},
        {"vision_config",
         {{"model_type", "siglip_vision_model"},
          {"num_hidden_layers", 27},
          {"hidden_size", 1152},
          {"intermediate_size", 4304},
          {"num_attention_heads", 16},
          {"image_size", 896},
          {"patch_size", 14}}}},
       419'816'304,
       256},
      // llava-hf/llava-1.5-7b-hf: 7063427072 - 6738939904 (Vicuna with 32,064 words).
      // openai/clip-vit-large-patch14-336
      // has 303507456, the projector 20979712.
      {"Llava",
       4096,
       {{"model_type", "llava"},
        {"vision_config",
         {{"model_type", "clip_vision_model"},
          {"num_hidden_layers", 24},
          {"hidden_size", 1024},
          {"intermediate_size", 4096},
          {"num_attention_heads", 16},
          {"image_size", 336},
          {"patch_size", 14}}}},
       303'507'456 + 20'979'712,
       576},
  };
}

Model multimodal(const KnownTower& known) {
  Json config = known.wrapper;
  if (!config.contains("model_type")) config["model_type"] = "qwen2_vl";
  config["text_config"] = llama_config();
  config["text_config"]["hidden_size"] = known.text_width;
  config["text_config"]["head_dim"] = 128;
  return read_config(config);
}

class ModelledTower : public testing::TestWithParam<KnownTower> {};

TEST_P(ModelledTower, HasAsManyParametersAsTheCheckpoint) {
  const Model model = multimodal(GetParam());
  ASSERT_EQ(model.towers.size(), 1u);
  const Tower& tower = model.towers.front();
  EXPECT_TRUE(tower.is_known);
  EXPECT_TRUE(tower.is_exact);
  EXPECT_EQ(count_tower(tower), GetParam().parameters);
  EXPECT_EQ(tower.image_tokens, GetParam().image_tokens);
  EXPECT_EQ(tower.projector.widths.back(), model.hidden);
}

INSTANTIATE_TEST_SUITE_P(OfTheHub, ModelledTower, testing::ValuesIn(known_towers()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Tower, IsLeftOutWithoutImagesAndSaysSo) {
  const Model model = multimodal(known_towers().front());
  EXPECT_THAT(tower_notes(model, false),
              ElementsAre(AllOf(HasSubstr("vision_config (27 layers of width 1152, 576388336 parameters)"),
                                HasSubstr("is left out"), HasSubstr("--images N"))));
  EXPECT_THAT(tower_notes(model, true), IsEmpty());
}

TEST(Tower, WithoutHeadsOrPatchesCannotBePartOfAStep) {
  KnownTower known = known_towers().front();
  known.wrapper["vision_config"].erase("patch_size");
  const Model model = multimodal(known);
  EXPECT_EQ(modelled_tower(model), nullptr);
  EXPECT_THAT(tower_notes(model, true), ElementsAre(AllOf(HasSubstr("about 0.41 B"), HasSubstr("--seq"))));
}

TEST(Tower, OfAnUnknownKindSaysWhatIsTakenForIt) {
  KnownTower known = known_towers().back();
  known.wrapper["model_type"] = "qwen2_vl";
  known.wrapper["vision_config"]["model_type"] = "my_vision_model";
  const Model model = multimodal(known);
  ASSERT_NE(modelled_tower(model), nullptr);
  EXPECT_FALSE(modelled_tower(model)->is_exact);
  EXPECT_THAT(tower_notes(model, true), ElementsAre(HasSubstr("are taken for LLaVA's")));
}

TEST(Tower, ForSoundIsLeftOutBesideOneForImages) {
  KnownTower known = known_towers().front();
  known.wrapper["audio_config"] = {{"d_model", 1280}, {"encoder_layers", 32}, {"encoder_ffn_dim", 5120}};
  const Model model = multimodal(known);
  EXPECT_EQ(modelled_tower(model)->key, "vision_config");
  EXPECT_THAT(tower_notes(model, true),
              ElementsAre(AllOf(HasSubstr("audio_config"), HasSubstr("is left out"))));
}

// Four of 32 layers see all patches; the other layers see squares of 8 x 8.
TEST(Tower, HasTheWindowsOfItsLayers) {
  const Model model = multimodal(known_towers()[1]);
  const Model& layers = modelled_tower(model)->layers;
  EXPECT_EQ(layers.window_of(0), 64);
  EXPECT_EQ(layers.window_of(7), 0);
  EXPECT_EQ(layers.window_of(30), 64);
  EXPECT_EQ(layers.window_of(31), 0);
}

TEST(Tower, OfHostileSizesIsNoTower) {
  for (const Json& bad :
       {Json(0), Json(-5), Json(1e30), Json("7"), Json(std::int64_t{1} << 62), Json::array()}) {
    KnownTower known = known_towers()[1];
    known.wrapper["vision_config"]["hidden_size"] = bad;
    EXPECT_EQ(modelled_tower(multimodal(known)), nullptr) << bad.dump();
    known = known_towers()[1];
    known.wrapper["vision_config"]["fullatt_block_indexes"] = bad;
    EXPECT_NO_THROW(multimodal(known)) << bad.dump();
  }
}

}  // namespace
}  // namespace rehearse
