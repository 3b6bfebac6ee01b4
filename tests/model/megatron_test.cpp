// A model whose every part is named, in a file of its own or inside another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "config_file.h"

namespace rehearse {
namespace {

// Counted by hand: tables, and per layer attention, router and experts of two matrices, LayerNorms.
TEST(MegatronGpt, HasThePartsThatItNames) {
  const Json experts = {{"model_type", "megatron_gpt"},
                        {"num_hidden_layers", 12},
                        {"hidden_size", 1024},
                        {"intermediate_size", 4096},
                        {"num_attention_heads", 8},
                        {"vocab_size", 50304},
                        {"max_position_embeddings", 1024},
                        {"tie_word_embeddings", true},
                        {"normalization", "LayerNorm"},
                        {"position_embedding_type", "learned_absolute"},
                        {"activation", "gelu"},
                        {"num_experts", 8},
                        {"num_experts_per_tok", 2},
                        {"moe_intermediate_size", 4096}};
  const std::int64_t layer = 4 * 1024 * 1024 + 8 * 1024 + 8 * 2 * 1024 * 4096 + 4 * 1024;
  EXPECT_EQ(count_parameters(read_config(experts)).total, (50304 + 1024) * 1024 + 12 * layer + 2 * 1024);
  EXPECT_EQ(count_parameters(read_config(experts)).total, 908'347'392);
  Json qwen = llama_config();  // Qwen2.5-0.5B
  qwen.update({{"model_type", "megatron_gpt"},
               {"num_hidden_layers", 24},
               {"hidden_size", 896},
               {"intermediate_size", 4864},
               {"num_attention_heads", 14},
               {"num_key_value_heads", 2},
               {"vocab_size", 151936},
               {"tie_word_embeddings", true},
               {"normalization", "RMSNorm"},
               {"position_embedding_type", "rope"},
               {"activation", "swiglu"},
               {"qkv_bias", true}});
  EXPECT_EQ(count_parameters(read_config(qwen)).total, 494'032'768);
  qwen["activation"] = "relu";
  EXPECT_THAT(complaint(qwen.dump()), testing::HasSubstr("/activation"));
  qwen.erase("activation");
  EXPECT_THAT(complaint(qwen.dump()), testing::HasSubstr("/activation"));
}

Json any_gpt() {
  Json config = llama_config();
  config.update({{"model_type", "megatron_gpt"},
                 {"normalization", "RMSNorm"},
                 {"position_embedding_type", "rope"},
                 {"activation", "swiglu"}});
  return config;
}

TEST(MegatronGpt, MayHaveAnyPositions) {
  Json config = any_gpt();
  for (const auto& [name, positions, yarn] : {std::tuple("rope", Positions::rotary, false),
                                              {"yarn", Positions::rotary, true},
                                              {"alibi", Positions::alibi, false},
                                              {"none", Positions::none, false}}) {
    config["position_embedding_type"] = name;
    EXPECT_EQ(read_config(config).positions, positions) << name;
    EXPECT_EQ(read_config(config).yarn, yarn) << name;
  }
}

// Same meaning of these keys as in the readers of gpt-oss, DeepSeek and Nemotron-H.
TEST(MegatronGpt, MayHaveThePartsOfOtherFamilies) {
  Json config = any_gpt();
  config.update({{"sliding_window", 128},
                 {"window_attn_skip_freq", 2},
                 {"softmax_type", "learnable"},
                 {"num_experts", 8},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 512},
                 {"swiglu_limit", 7},
                 {"moe_linear_bias", true},
                 {"moe_latent_size", 256},
                 {"kv_lora_rank", 512},
                 {"qk_nope_head_dim", 128},
                 {"qk_rope_head_dim", 64},
                 {"v_head_dim", 128},
                 {"num_nextn_predict_layers", 1}});
  const Model model = read_config(config);
  EXPECT_EQ(model.window_of(0), 128);
  EXPECT_EQ(model.window_of(1), 0);
  EXPECT_TRUE(model.attention_sinks);
  EXPECT_TRUE(model.experts->clamped);
  EXPECT_TRUE(model.experts->linear_bias);
  EXPECT_EQ(model.experts->latent, 256);
  EXPECT_EQ(model.latent->kv_rank, 512);
  EXPECT_EQ(model.mtp_layers, 1);
}

TEST(MegatronGpt, MayBeAHybrid) {
  Json config = any_gpt();
  config.update({{"num_hidden_layers", 3},
                 {"position_embedding_type", "none"},
                 {"activation", "squared_relu"},
                 {"hybrid_override_pattern", "M*-"},
                 {"mamba_num_heads", 128},
                 {"mamba_head_dim", 64}});
  const Model model = read_config(config);
  EXPECT_EQ(model.pattern, "M*-");
  EXPECT_EQ(model.state_space->heads, 128);
}

TEST(InlineModel, IsReadAsAFileIs) {
  Json config = any_gpt();
  config["name"] = "mine";
  const Model model = read_inline_model(config, "runs.jsonl:3", "/model");
  EXPECT_EQ(model.name, "mine");
  EXPECT_EQ(count_parameters(model).total, count_parameters(read_config(config)).total);
}

TEST(InlineModel, RefusesUnknownKeysWhereAllAreKnown) {
  const auto complaint_of = [](const Json& config) -> std::string {
    try {
      read_inline_model(config, "runs.jsonl:3", "/model");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  Json config = any_gpt();
  config["hidden_sise"] = 1;
  EXPECT_THAT(complaint_of(config), testing::HasSubstr("runs.jsonl:3: /model/hidden_sise"));
  Json llama = llama_config();
  llama["rope_theta"] = 5e5;
  EXPECT_EQ(complaint_of(llama), "") << "Hugging Face's files have many more keys";
}

}  // namespace
}  // namespace rehearse
