// Configurations that are no plain file of a known family: parts of multimodal models, unknown types, types
// whose mechanisms have no kernels, files of newer writers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_file.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json of_type(const std::string& type) {
  Json config = llama_config();
  config["model_type"] = type;
  return config;
}

std::vector<std::string> warnings_as(const Json& config, const std::string& as) {
  return read_model(write_config(config.dump()), as).warnings;
}

TEST(UnknownType, IsRefusedWithTheWayOn) {
  const std::string said = complaint(of_type("my_model").dump());
  EXPECT_THAT(said, HasSubstr("/model_type: must be one of"));
  EXPECT_THAT(said, HasSubstr("--as llama reads the file as one of a known type"));
}

TEST(UnknownType, OfAKnownClassNamesItsFamily) {
  Json config = of_type("my_model");
  config["architectures"] = {"Qwen3ForCausalLM"};
  EXPECT_THAT(complaint(config.dump()), HasSubstr("--as qwen3 reads"));
}

TEST(UnknownType, CanBeReadAsAKnownOneWithItsKeysTold) {
  Json config = of_type("my_model");
  config["gates_of_mine"] = 3;
  config.erase("max_position_embeddings");
  const Model model = read_model(write_config(config.dump()), "llama");
  EXPECT_EQ(count_parameters(model).total, 8'030'261'248);
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_THAT(model.warnings[0],
              AllOf(HasSubstr("read as llama"), HasSubstr("Keys used: hidden_size, num_hidden_layers"),
                    HasSubstr("Keys ignored: gates_of_mine"), HasSubstr("attention_bias")));
}

TEST(UnknownType, CannotBeReadAsAnUnknownOne) {
  EXPECT_THROW(warnings_as(of_type("my_model"), "lama"), InputError);
  EXPECT_THROW(warnings_as(of_type("my_model"), "bert"), InputError);
}

TEST(TypeWithoutKernels, IsRefusedWithItsMechanism) {
  for (const auto& [type, why] : {std::pair{"qwen3_next", "gated delta rule"},
                                  {"bert", "encoders"},
                                  {"mamba2", "Mamba-2"},
                                  {"minimax_m1", "lightning attention"}})
    EXPECT_THAT(complaint(of_type(type).dump()), AllOf(HasSubstr(why), HasSubstr("--as "))) << type;
}

TEST(Approximated, MechanismsAreNamedWithTheirEffect) {
  Json config = read_json_file(SOURCE_DIR "/scenarios/models/deepseek-v3.json");
  config["model_type"] = "deepseek_v32";
  config["index_topk"] = 2048;
  const Model model = read_config(config);
  EXPECT_THAT(model.not_modelled, Contains("index_topk"));
  EXPECT_THAT(model.warnings, Contains(HasSubstr("indexer of sparse attention is left out")));
}

TEST(Gemma2, CapsAreNamedAsNotModelled) {
  Json config = of_type("gemma2");
  config["head_dim"] = 128;
  const Model model = read_config(config);
  EXPECT_THAT(model.not_modelled, ElementsAre("attn_logit_softcapping", "final_logit_softcapping"));
  EXPECT_THAT(model.warnings, ElementsAre(HasSubstr("scores is left out: too fast"),
                                          HasSubstr("logits is left out: too fast")));
  config["attn_logit_softcapping"] = config["final_logit_softcapping"] = nullptr;
  EXPECT_THAT(read_config(config).not_modelled, IsEmpty());
  EXPECT_THAT(read_config(config).warnings, IsEmpty());
}

// A key that a formula reads is not called ignored.
TEST(LayersWithoutRotaryPositions, AreNamedWhereWindowsDecide) {
  for (const char* type : {"exaone4", "cohere2"}) {
    Json config = of_type(type);
    const Model model = read_config(config);
    EXPECT_EQ(model.window, 4096) << "as the class has it where the file has none";
    EXPECT_EQ(model.full_every, 4);
    EXPECT_THAT(model.warnings, ElementsAre(HasSubstr("sliding_window 4096: layers that see all keys")))
        << type;
    EXPECT_THAT(model.not_modelled, IsEmpty()) << type;
    config["sliding_window"] = nullptr;
    EXPECT_THAT(read_config(config).warnings, IsEmpty()) << type;
  }
}

TEST(LayersWithoutRotaryPositions, AreNamedWhereTheFileLeavesThemToTheClass) {
  EXPECT_THAT(read_config(of_type("smollm3")).warnings, ElementsAre(HasSubstr("no_rope_layer_interval 4")));
  Json llama4 = of_type("llama4_text");
  EXPECT_THAT(read_config(llama4).warnings,
              ElementsAre(HasSubstr("attention_chunk_size"), HasSubstr("no_rope_layer_interval 4"),
                          HasSubstr("use_qk_norm true: norms of queries and keys")));
  llama4["use_qk_norm"] = false;
  EXPECT_THAT(read_config(llama4).warnings, Not(Contains(HasSubstr("use_qk_norm"))));
}

TEST(AbsentKeys, HaveTheValueOfTheClass) {
  EXPECT_EQ(read_config(of_type("mistral")).window, 4096);
  EXPECT_EQ(read_config(of_type("ministral3")).window, 0);
  EXPECT_TRUE(read_config(of_type("seed_oss")).dropout);
  EXPECT_FALSE(read_config(of_type("phi3")).dropout);
}

TEST(QkNorm, SpansOneHeadOrAllOfThem) {
  EXPECT_EQ(read_config(of_type("qwen3")).qk_norm_span, QkNormSpan::head);
  EXPECT_EQ(read_config(of_type("olmo2")).qk_norm_span, QkNormSpan::all_heads);
  Json cohere = of_type("cohere");
  EXPECT_FALSE(read_config(cohere).qk_norm);
  cohere["use_qk_norm"] = true;
  EXPECT_EQ(read_config(cohere).qk_norm_span, QkNormSpan::each_head);
}

Json wrapper() {
  Json text = of_type("qwen3_vl_text");
  text["head_dim"] = 128;
  return {{"model_type", "qwen3_vl"},
          {"architectures", {"Qwen3VLForConditionalGeneration"}},
          {"text_config", text},
          {"vision_config",
           {{"depth", 27},
            {"hidden_size", 1152},
            {"intermediate_size", 4304},
            {"hidden_act", "gelu_pytorch_tanh"}}},
          {"tie_word_embeddings", true}};
}

TEST(Wrapper, IsReadByItsTextPart) {
  const Model model = read_config(wrapper());
  EXPECT_TRUE(model.qk_norm);
  EXPECT_TRUE(model.tied_embeddings) << "as the wrapper says for all parts";
  EXPECT_EQ(model.hidden, 4096);
  EXPECT_THAT(model.not_modelled, ElementsAre("vision_config"));
  EXPECT_THAT(
      model.warnings,
      ElementsAre(HasSubstr("vision_config (27 layers of width 1152, about 0.41 B parameters) is left out")));
}

TEST(Wrapper, ErrorsPointIntoTheTextPart) {
  Json config = wrapper();
  config["text_config"]["hidden_size"] = -1;
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/text_config/hidden_size"));
  config["text_config"] = of_type("mllama_text_model");
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/text_config/model_type"));
}

TEST(Wrapper, OlderFilesHaveTheTextsKeysBesideTheTower) {
  Json config = of_type("qwen2_5_vl");
  config["vision_config"] = {{"depth", 32}, {"hidden_size", 1280}};
  EXPECT_TRUE(read_config(config).qkv_bias);
  EXPECT_THAT(read_config(config).warnings, ElementsAre(HasSubstr("vision_config is left out")));
}

// "activation" and "experts" are parts of rows, and anything in a file.
TEST(PartsOfRows, AreNotReadFromFiles) {
  Json config = llama_config();
  config["activation"] = "gelu";
  config["experts"] = config["latent"] = config["windows"] = true;
  EXPECT_EQ(count_parameters(read_config(config)).total, 8'030'261'248);
}

TEST(BigFile, TablesOfManyKeysArePassedOver) {
  Json config = llama_config();
  for (int i = 0; i < 22'000; ++i) config["quantization_config"]["layer_" + std::to_string(i)] = 4;
  EXPECT_EQ(count_parameters(read_config(config)).total, 8'030'261'248);
  EXPECT_THAT(read_config(config).not_modelled, ElementsAre("quantization_config"));
}

TEST(LayerCount, IsThatOfTheListWhereItIsAbsent) {
  Json config = of_type("gemma3_text");
  config.erase("num_hidden_layers");
  config["head_dim"] = 128;
  config["sliding_window"] = 512;
  config["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention"};
  const Model model = read_config(config);
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(model.window_of(0), 512);
  EXPECT_EQ(model.window_of(1), 0);
}

TEST(Windows, MayBeInAnyLayers) {
  Json config = of_type("olmo3");
  config["num_hidden_layers"] = 4;
  config["sliding_window"] = 512;
  config["layer_types"] = {"full_attention", "sliding_attention", "full_attention", "full_attention"};
  const Model model = read_config(config);
  EXPECT_EQ(model.windows, "0100");
  EXPECT_EQ(model.window_of(1), 512);
  EXPECT_EQ(model.window_of(3), 0);
  config["layer_types"][2] = "linear_attention";
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/layer_types/2"));
}

TEST(Windows, OfExaoneEndWithALayerThatSeesAll) {
  Json config = of_type("exaone4");
  config["num_hidden_layers"] = 5;
  config["sliding_window"] = 512;
  config["sliding_window_pattern"] = "LLLG";
  EXPECT_EQ(read_config(config).windows, "11100");
}

TEST(SparseLayers, MayBeListed) {
  Json config = qwen3_moe_config();
  config["num_hidden_layers"] = 4;
  config["mlp_only_layers"] = {1};
  const Model model = read_config(config);
  EXPECT_TRUE(model.is_sparse(0) && !model.is_sparse(1) && model.is_sparse(2));
  EXPECT_EQ(count_parameters(model).dense_layers, 1);
}

TEST(Experts, AreCountedUnderEveryName) {
  Json config = of_type("glm4_moe");
  config["num_experts_per_tok"] = 2;
  config["moe_intermediate_size"] = 512;
  for (const char* name : {"n_routed_experts", "num_routed_experts", "num_local_experts", "num_experts"}) {
    Json named = config;
    named[name] = 16;
    EXPECT_EQ(read_config(named).experts->count, 16) << name;
  }
}

TEST(SharedExperts, MayBeOfAnyWidth) {
  Json config = of_type("qwen2_moe");
  config["num_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  config["moe_intermediate_size"] = 512;
  config["shared_expert_intermediate_size"] = 700;
  EXPECT_EQ(read_config(config).experts->shared_ffn_hidden, 700);
  Json latent = read_json_file(SOURCE_DIR "/scenarios/models/deepseek-v3.json");
  latent["moe_shared_expert_intermediate_size"] = 3000;  // as Megatron-LM's flag of that name
  EXPECT_EQ(read_config(latent).experts->shared_ffn_hidden, 3000);
}

TEST(PerLayerValues, MustBeTheSame) {
  Json config = of_type("hunyuan_v1_moe");
  config["num_experts"] = 8;
  config["moe_topk"] = {2, 2};
  config["moe_intermediate_size"] = {512, 512};
  EXPECT_EQ(read_config(config).experts->per_token, 2);
  config["moe_topk"] = {2, 4};
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/moe_topk: must be the same in every layer"));
}

TEST(OnlyKnownValues, AreRead) {
  Json config = {{"model_type", "opt"},
                 {"hidden_size", 1024},
                 {"num_hidden_layers", 24},
                 {"num_attention_heads", 16},
                 {"ffn_dim", 4096},
                 {"vocab_size", 50272},
                 {"max_position_embeddings", 2048},
                 {"do_layer_norm_before", false}};
  EXPECT_THAT(complaint(config.dump()),
              HasSubstr("/do_layer_norm_before: must be true where model_type is opt"));
  Json bamba = of_type("bamba");
  bamba["mamba_conv_bias"] = false;
  EXPECT_THAT(complaint(bamba.dump()), HasSubstr("/mamba_conv_bias: must be true where model_type is bamba"));
}

}  // namespace
}  // namespace rehearse
