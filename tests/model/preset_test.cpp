#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_reader.h"
#include "model/read.h"

namespace rehearse {
namespace {

constexpr std::array kPromised = {"gpt2",
                                  "gpt3-175b",
                                  "gpt-22b",
                                  "gpt-530b",
                                  "gpt-1t",
                                  "sc21-1.7b",
                                  "sc21-3.6b",
                                  "sc21-7.5b",
                                  "sc21-18.4b",
                                  "sc21-39.1b",
                                  "sc21-76.1b",
                                  "sc21-145.6b",
                                  "sc21-310.1b",
                                  "sc21-529.6b",
                                  "sc21-1008b",
                                  "llama2-7b",
                                  "llama2-13b",
                                  "llama2-70b",
                                  "llama3-8b",
                                  "llama3-70b",
                                  "mistral-7b",
                                  "llama3.1-405b",
                                  "mixtral-8x7b",
                                  "mixtral-8x22b",
                                  "deepseek-v3",
                                  "qwen3-235b-a22b",
                                  "grok-1",
                                  "qwen3-30b-a3b",
                                  "nemotron4-15b",
                                  "nemotron4-340b",
                                  "qwen3-8b",
                                  "qwen2.5-7b",
                                  "gpt-oss-120b",
                                  "gpt-oss-20b",
                                  "kimi-k2",
                                  "nemotron-h-8b",
                                  "nemotron-h-56b",
                                  "nemotron3-nano-30b-a3b",
                                  "nemotron3-super-120b-a12b",
                                  "nemotron3-ultra-550b-a55b"};

TEST(Presets, EveryPromisedNameIsThere) {
  const std::vector<std::string> names = model_names();
  for (const char* name : kPromised) EXPECT_THAT(names, testing::Contains(name));
}

TEST(Presets, EachReadsIsValidAndSaysWhereItWasPublished) {
  for (const std::string& name : model_names()) {
    const Model model = read_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_NO_THROW(require_valid(model, name));
    const Json config = read_json_file(SOURCE_DIR "/scenarios/models/" + name + ".json");
    EXPECT_TRUE(config.contains("_source")) << name;
  }
}

TEST(Presets, MisspeltNameGetsTheNearest) {
  try {
    read_model("lama3-70b");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_TRUE(error.violations().front().nearest.starts_with("llama3-70b")) << error.what();
  }
}

TEST(Presets, MegatronGptsHaveBiasesLearnedPositionsAndATiedHead) {
  const Model model = read_model("gpt3-175b");
  EXPECT_TRUE(model.qkv_bias && model.attention_out_bias && model.mlp_bias);
  EXPECT_EQ(model.positions, Positions::learned);
  EXPECT_EQ(model.max_positions, 2048);
  EXPECT_EQ(model.vocab, 51200);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_FALSE(model.gated_mlp);
}

}  // namespace
}  // namespace rehearse
