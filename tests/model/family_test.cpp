// The meaning of absent and special keys in each family.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_file.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

Json gpt2_config() {
  return {{"model_type", "gpt2"}, {"n_layer", 12},       {"n_embd", 768},
          {"n_head", 12},         {"n_positions", 1024}, {"vocab_size", 50257}};
}

TEST(Llama, SmallestConfigIsEnough) {
  const Model model = read_config(Json::parse(
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
          "tie_word_embeddings": false})"));
  EXPECT_EQ(count_parameters(model).total, 8'030'261'248);
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_EQ(model.norm, Norm::rms);
  EXPECT_TRUE(model.gated_mlp);
}

Json mamba2_config() {
  return {{"model_type", "mamba2"}, {"hidden_size", 1024}, {"num_hidden_layers", 4},
          {"vocab_size", 32000},    {"expand", 2},         {"head_dim", 64},
          {"state_size", 128},      {"n_groups", 1}};
}

// transformers, Mamba2Config: hidden_size x expand = num_heads x head_dim. Its default of 128 heads fits
// 4096.
TEST(Mamba2, HeadsFillTheExpandedWidth) {
  const Model model = read_config(mamba2_config());
  EXPECT_EQ(model.state_space->heads, 32);
  EXPECT_THAT(model.warnings, Contains(testing::HasSubstr("32 heads fill the width of 2048")));
  Json said = mamba2_config();
  said["num_heads"] = 32;
  EXPECT_THAT(read_config(said).warnings, IsEmpty());
  said["num_heads"] = 16;
  EXPECT_THAT(complaint(said.dump()), testing::HasSubstr("must fill the width of 2048"));
}

// transformers, MambaConfig: the width is a plain key, which a file may set.
TEST(Mamba, AStatedWidthReplacesTheExpandedOne) {
  Json config = {{"model_type", "mamba"}, {"hidden_size", 64}, {"num_hidden_layers", 2}, {"vocab_size", 512}};
  EXPECT_EQ(read_config(config).recurrence->value_heads, 128);
  config["intermediate_size"] = 192;
  EXPECT_EQ(read_config(config).recurrence->value_heads, 192);
}

TEST(Llama, NullOrAbsentKvHeadsMeanAllHeads) {
  Json config = llama_config();
  config["num_key_value_heads"] = nullptr;
  EXPECT_EQ(read_config(config).kv_heads, 32);
  config.erase("num_key_value_heads");
  EXPECT_EQ(read_config(config).kv_heads, 32);
}

TEST(Llama, BiasesAreCounted) {
  Json config = llama_config();
  const std::int64_t plain = count_parameters(read_config(config)).total;
  config["attention_bias"] = true;
  const std::int64_t attention = count_parameters(read_config(config)).total;
  EXPECT_EQ(attention - plain, 32 * (4096 + 2 * 1024 + 4096));
  config["mlp_bias"] = true;
  EXPECT_EQ(count_parameters(read_config(config)).total - attention, 32 * (2 * 14336 + 4096));
}

TEST(Llama, HeadDimMayDifferFromHiddenOverHeads) {
  Json config = llama_config();
  config["head_dim"] = 96;
  const ParameterCount count = count_parameters(read_config(config));
  EXPECT_EQ(count.attention, 4096 * 96 * (32 + 8 + 8) + 32 * 96 * 4096);
}

TEST(Family, IsFoundByItsArchitectureWhereModelTypeIsAbsent) {
  Json config = llama_config();
  config.erase("model_type");
  config["architectures"] = {"LlamaForCausalLM"};
  EXPECT_EQ(count_parameters(read_config(config)).total, 8'030'261'248);
}

TEST(Family, UnknownKeysAreReadOver) {
  Json config = llama_config();
  config["a_key_of_the_future"] = {{"deep", 1}};
  EXPECT_THAT(read_config(config).not_modelled, IsEmpty());
}

// Python's json writes constants that JSON does not have (time_step_limit of Nemotron-H is [0.0, Infinity]).
TEST(Family, ConstantsOfPythonAreTexts) {
  std::string text = llama_config().dump();
  text.pop_back();
  const auto with = [&](const std::string& more) { return write_config(text + ", " + more + "}"); };
  const Model model =
      read_model(with(R"("time_step_limit": [0.0, Infinity, -Infinity, NaN], "note": "Infinity \" NaN")"));
  EXPECT_EQ(count_parameters(model).total, 8'030'261'248);
  EXPECT_NE(complaint(text + R"(, "head_dim": Infinity})"), "") << "no number is read from one";
}

// transformers 5 writes rope_parameters, once or for each type of layer.
TEST(Family, YarnIsFoundUnderItsNewerName) {
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 8.0}, {"rope_theta", 5e5}};
  Json config = llama_config();
  EXPECT_FALSE(read_config(config).yarn);
  config["rope_parameters"] = yarn;
  EXPECT_TRUE(read_config(config).yarn);
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  EXPECT_FALSE(read_config(config).yarn);
  config["rope_parameters"] = {{"full_attention", yarn}, {"sliding_attention", {{"rope_type", "default"}}}};
  EXPECT_TRUE(read_config(config).yarn);
}

TEST(Mistral, WindowIsKeptAndNullIsNone) {
  Json config = llama_config();
  config["model_type"] = "mistral";
  config["sliding_window"] = 4096;
  EXPECT_EQ(read_config(config).window, 4096);
  config["sliding_window"] = nullptr;
  EXPECT_EQ(read_config(config).window, 0);
}

TEST(Mistral, AbsentKvHeadsAreNotGuessed) {
  Json config = llama_config();
  config["model_type"] = "mistral";
  config.erase("num_key_value_heads");
  EXPECT_THAT(complaint(config.dump()), testing::HasSubstr("/num_key_value_heads: is required"));
}

TEST(Qwen2, HasBiasesOnQueriesKeysAndValuesOnly) {
  Json config = llama_config();
  config["model_type"] = "qwen2";
  const Model model = read_config(config);
  EXPECT_TRUE(model.qkv_bias);
  EXPECT_FALSE(model.attention_out_bias);
  EXPECT_FALSE(model.mlp_bias);
}

TEST(Qwen2, WindowCountsOnlyWhereItIsUsed) {
  Json config = llama_config();
  config["model_type"] = "qwen2";
  config["sliding_window"] = 4096;
  EXPECT_EQ(read_config(config).window, 0);
  config["use_sliding_window"] = true;
  EXPECT_EQ(read_config(config).window, 4096);
  config["max_window_layers"] = 32;
  EXPECT_EQ(read_config(config).window, 0);
  config["max_window_layers"] = 16;
  EXPECT_EQ(read_config(config).window_of(15), 0);
  EXPECT_EQ(read_config(config).window_of(16), 4096);
}

TEST(Qwen3, NormsQueriesAndKeysAndHasNoBias) {
  Json config = llama_config();
  config["model_type"] = "qwen3";
  const Model model = read_config(config);
  EXPECT_TRUE(model.qk_norm);
  EXPECT_FALSE(model.qkv_bias);
  EXPECT_EQ(count_parameters(model).norms, 2 * 4096 + 2 * 128);
}

TEST(Gpt2, AbsentKeysMeanTiedFourTimesWideAndDropout) {
  const Model model = read_config(gpt2_config());
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.ffn_hidden, 4 * 768);
  EXPECT_TRUE(model.dropout);
  EXPECT_EQ(model.positions, Positions::learned);
  EXPECT_EQ(count_parameters(model).positions, 1024 * 768);
}

TEST(Gpt2, DropoutIsOffOnlyWhereEveryRateIsZero) {
  Json config = gpt2_config();
  config["resid_pdrop"] = config["embd_pdrop"] = 0;
  EXPECT_TRUE(read_config(config).dropout);
  config["attn_pdrop"] = 0.0;
  EXPECT_FALSE(read_config(config).dropout);
}

TEST(GptNeox, ResidualIsParallelUnlessSaidOtherwise) {
  Json config = llama_config();
  config["model_type"] = "gpt_neox";
  config.erase("num_key_value_heads");
  Model model = read_config(config);
  EXPECT_TRUE(model.parallel_residual);
  EXPECT_TRUE(model.qkv_bias && model.attention_out_bias && model.mlp_bias);
  EXPECT_FALSE(model.gated_mlp);
  config["use_parallel_residual"] = false;
  EXPECT_FALSE(read_config(config).parallel_residual);
}

TEST(Nemotron, HasLayerNormAndNoGate) {
  const Model model = read_model("nemotron4-15b");
  EXPECT_EQ(model.norm, Norm::layer);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_TRUE(model.squared_relu);
  EXPECT_FALSE(model.mlp_bias);
  EXPECT_EQ(model.kv_heads, 8);
}

TEST(Qwen3Moe, SparseLayersFollowStepAndDenseLayers) {
  Json config = qwen3_moe_config();
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {0, 1};
  const Model model = read_config(config);
  EXPECT_FALSE(model.is_sparse(1));
  EXPECT_FALSE(model.is_sparse(2));
  EXPECT_TRUE(model.is_sparse(3));
  EXPECT_EQ(count_parameters(model).sparse_layers, 15);
}

TEST(Qwen3Moe, NewerNameOfTheExpertCountIsTaken) {
  Json config = qwen3_moe_config();
  config.erase("num_experts");
  config["num_local_experts"] = 32;
  EXPECT_EQ(read_config(config).experts->count, 32);
}

TEST(DeepSeekV3, AttentionIsLatentAndFirstLayersAreDense) {
  const Model model = read_model("deepseek-v3");
  ASSERT_TRUE(model.latent && model.experts);
  EXPECT_EQ(model.head_dim, 192);
  EXPECT_FALSE(model.is_sparse(2));
  EXPECT_TRUE(model.is_sparse(3));
  EXPECT_EQ(model.experts->shared_ffn_hidden, 2048);
  EXPECT_TRUE(model.experts->router_bias);
  EXPECT_EQ(model.mtp_layers, 1);
}

TEST(GptOss, LooksThroughAWindowInEveryOtherLayerAndHasBiasesEverywhere) {
  const Model model = read_model("gpt-oss-120b");
  EXPECT_EQ(model.window_of(0), 128);
  EXPECT_EQ(model.window_of(1), 0);
  EXPECT_EQ(model.full_every, 2);
  EXPECT_TRUE(model.attention_sinks && model.qkv_bias && model.attention_out_bias);
  ASSERT_TRUE(model.experts);
  EXPECT_TRUE(model.experts->linear_bias && model.experts->clamped);
  EXPECT_EQ(model.experts->ffn_hidden, 2880);
  EXPECT_THAT(model.not_modelled, ElementsAre("quantization_config"));
}

TEST(GptOss, LayersOfWindowsNeedNoStep) {
  Json config = read_json_file(SOURCE_DIR "/scenarios/models/gpt-oss-20b.json");
  config["layer_types"][3] = "sliding_attention";
  EXPECT_EQ(read_config(config).window_of(3), 128);
  EXPECT_EQ(read_config(config).window_of(5), 0);
  config["layer_types"].erase(3);
  EXPECT_THAT(complaint(config.dump()), testing::HasSubstr("23 names, num_hidden_layers = 24"));
}

TEST(NotModelled, NamesWhatCostsAndIsNotRead) {
  EXPECT_THAT(read_model("deepseek-v3").not_modelled, ElementsAre("quantization_config", "topk_group"));
  Json config = llama_config();
  config["layer_types"] = {"full_attention", "sliding_attention"};
  config["attn_logit_softcapping"] = 30.0;
  EXPECT_THAT(read_config(config).not_modelled, ElementsAre("attn_logit_softcapping", "layer_types"));
}

TEST(NotModelled, IsEmptyWhereTheKeySaysNothing) {
  Json config = llama_config();
  config["num_nextn_predict_layers"] = 0;
  config["quantization_config"] = nullptr;
  config["is_encoder_decoder"] = false;
  config["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_THAT(read_config(config).not_modelled, IsEmpty());
}

TEST(Name, IsThatOfTheFolderOfAConfigJson) {
  const std::filesystem::path folder = scratch().file("Llama-of-mine");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << llama_config().dump();
  EXPECT_EQ(read_model((folder / "config.json").string()).name, "Llama-of-mine");
  EXPECT_EQ(read_model("llama3-8b").name, "llama3-8b");
}

Json nemotron_h_config() {
  return {{"model_type", "nemotron_h"}, {"hybrid_override_pattern", "M-M*E"},
          {"num_hidden_layers", 5},     {"hidden_size", 256},
          {"intermediate_size", 512},   {"num_attention_heads", 8},
          {"num_key_value_heads", 2},   {"mamba_num_heads", 16},
          {"mamba_head_dim", 32},       {"n_routed_experts", 8},
          {"num_experts_per_tok", 2},   {"moe_intermediate_size", 64},
          {"n_shared_experts", 0},      {"vocab_size", 1024}};
}

TEST(NemotronH, LayersAreThoseOfItsPattern) {
  const Model model = read_config(nemotron_h_config());
  EXPECT_EQ(model.type_of(0), LayerType::mamba);
  EXPECT_EQ(model.type_of(1), LayerType::mlp);
  EXPECT_EQ(model.type_of(3), LayerType::attention);
  EXPECT_EQ(model.type_of(4), LayerType::experts);
  EXPECT_TRUE(model.is_sparse(4) && !model.is_sparse(1));
  EXPECT_EQ(model.positions, Positions::none);
  EXPECT_TRUE(model.squared_relu && !model.gated_mlp);
  EXPECT_EQ(model.state_space->state, 128) << "the class's own";
  EXPECT_THAT(model.not_modelled, IsEmpty());
}

TEST(NemotronH, LayersMayBeNamedOneByOne) {
  Json config = nemotron_h_config();
  config.erase("hybrid_override_pattern");
  config["layers_block_type"] = {"mamba", "mlp", "mamba", "attention", "moe"};
  EXPECT_EQ(read_config(config).pattern, "M-M*E");
  config["layers_block_type"][1] = "linear";
  EXPECT_THAT(complaint(config.dump()), testing::HasSubstr("/layers_block_type/1"));
}

TEST(NemotronH, PatternIsAsLongAsTheModelAndHasItsLettersOnly) {
  Json config = nemotron_h_config();
  config["num_hidden_layers"] = 6;
  EXPECT_THAT(complaint(config.dump()), testing::HasSubstr("a letter for each layer"));
  config["hybrid_override_pattern"] = "M-M*EG";
  EXPECT_THAT(complaint(config.dump()), testing::HasSubstr("has M, *, - and E only"));
}

TEST(NemotronH, BiasesOfItsProjectionsAreNamedAsNotModelled) {
  Json config = nemotron_h_config();
  config["use_bias"] = true;
  EXPECT_THAT(read_config(config).not_modelled, ElementsAre("use_bias"));
}

}  // namespace
}  // namespace rehearse
