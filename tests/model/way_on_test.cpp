// Configurations that are not a plain file of a known family: parts of multimodal models, unknown types,
// types whose mechanisms have no kernels, files of newer versions.
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

// Ling 2.0's files state the type of Ling 1, MiniMax-M2's first files that of MiniMax-Text-01.
TEST(TypeOfSeveralClasses, IsReadByItsClass) {
  Json ling = qwen3_moe_config();
  ling["model_type"] = "bailing_moe";
  EXPECT_FALSE(read_config(ling).qk_norm);
  ling["architectures"] = {"BailingMoeV2ForCausalLM"};
  const Model second = read_config(ling);
  EXPECT_TRUE(second.qk_norm);
  EXPECT_TRUE(second.experts->router_bias);
  EXPECT_THAT(second.warnings, IsEmpty());
  Json minimax = mixtral_config();
  minimax["model_type"] = "minimax";
  minimax["architectures"] = {"MiniMaxM2ForCausalLM"};
  EXPECT_FALSE(read_config(minimax).recurrence);
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
  EXPECT_THROW(warnings_as(of_type("my_model"), "zamba2"), InputError);
}

TEST(TypeWithoutKernels, IsRefusedWithItsMechanism) {
  for (const auto& [type, why] : {std::pair{"rwkv7", "RWKV's recurrence"},
                                  {"bart", "encoders beside decoders"},
                                  {"zamba2", "shared attention"},
                                  {"mllama_text_model", "cross-attention"}})
    EXPECT_THAT(complaint(of_type(type).dump()), AllOf(HasSubstr(why), HasSubstr("--as "),
                                                       HasSubstr("model_type block_list describes layers")))
        << type;
}

// transformers, DeepseekV32Indexer: wq_b, wk, k_norm and weights_proj of each layer, its module's included.
TEST(Indexer, AddsItsParametersToEachLayerThatHasOne) {
  Json config = read_json_file(SOURCE_DIR "/scenarios/models/deepseek-v3.json");
  const std::int64_t without = count_parameters(read_config(config)).total;
  config["model_type"] = "deepseek_v32";
  const Model model = read_config(config);
  EXPECT_EQ(model.indexer->top_k, 2048);
  const std::int64_t layers = model.layers + model.mtp_layers;
  EXPECT_EQ(count_parameters(model).total - without, layers * 13'959'424);
  Json types = Json::array({"full"});
  while (types.size() < 61) types.push_back("shared");
  config["indexer_types"] = types;
  EXPECT_EQ(count_parameters(read_config(config)).total - without, 2 * 13'959'424)
      << "a layer's and the module's";
  config["indexer_types"][3] = "half";
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/indexer_types/3: must be an entry"));
}

TEST(Chunks, AreWindowsOfLayersWithRotaryPositions) {
  Json llama4 = of_type("llama4_text");
  const Model model = read_config(llama4);
  EXPECT_TRUE(model.window_in_chunks);
  EXPECT_EQ(model.window, 8192);
  EXPECT_EQ(model.full_every, 4);
  llama4["num_hidden_layers"] = 2;
  llama4["no_rope_layers"] = {0, 1};
  EXPECT_EQ(read_config(llama4).window_of(0), 0);
  EXPECT_EQ(read_config(llama4).window_of(1), 8192);
}

TEST(Encoder, SeesAllTokensAndHasAHeadOfItsOwn) {
  Json config = of_type("bert");
  config.erase("num_key_value_heads");
  const Model model = read_config(config);
  EXPECT_TRUE(model.bidirectional);
  EXPECT_TRUE(model.head_transform);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.token_types, 2);
  EXPECT_EQ(model.norm_place, NormPlace::after_sum);
  config["position_embedding_type"] = "relative_key";
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/position_embedding_type: must be \"absolute\""));
}

TEST(RecurrentLayers, AreThoseOfTheListOrTheInterval) {
  Json config = of_type("qwen3_next");
  EXPECT_EQ(read_config(config).recurrent.substr(0, 8), "11101110");
  config["num_hidden_layers"] = 3;
  config["layer_types"] = {"full_attention", "linear_attention", "full_attention"};
  EXPECT_EQ(read_config(config).recurrent, "010");
  config["layer_types"][1] = "lightning";
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/layer_types/1: must be an entry"));
  Json minimax = mixtral_config();
  minimax["model_type"] = "minimax_text_01";
  minimax["num_hidden_layers"] = 4;
  minimax["attn_type_list"] = {0, 0, 0, 1};
  EXPECT_EQ(read_config(minimax).recurrent, "1110");
}

TEST(Gemma2, CapsScoresAndLogits) {
  Json config = of_type("gemma2");
  config["head_dim"] = 128;
  const Model model = read_config(config);
  EXPECT_TRUE(model.caps_scores);
  EXPECT_TRUE(model.caps_logits);
  EXPECT_THAT(model.not_modelled, ElementsAre("attn_logit_softcapping"));
  EXPECT_THAT(model.warnings, ElementsAre(HasSubstr("the tanh of each attention score is not costed")));
  config["attn_logit_softcapping"] = config["final_logit_softcapping"] = nullptr;
  EXPECT_FALSE(read_config(config).caps_logits);
  EXPECT_THAT(read_config(config).not_modelled, IsEmpty());
  EXPECT_THAT(read_config(config).warnings, IsEmpty());
}

TEST(LayersWithoutRotaryPositions, AreThoseThatSeeAllKeysBesideWindows) {
  for (const char* type : {"exaone4", "cohere2", "llama4_text"}) {
    Json config = of_type(type);
    const Model model = read_config(config);
    EXPECT_EQ(model.full_every, 4) << "as the class has it where the file has none";
    EXPECT_EQ(model.rotary.substr(0, 8), "11101110") << type;
    EXPECT_THAT(model.warnings, IsEmpty()) << type;
    EXPECT_THAT(model.not_modelled, IsEmpty()) << type;
  }
  Json config = of_type("exaone4");
  config["sliding_window"] = nullptr;
  EXPECT_EQ(read_config(config).rotary, "") << "without windows all layers rotate";
}

TEST(LayersWithoutRotaryPositions, AreListedOrEveryFourth) {
  Json config = of_type("smollm3");
  EXPECT_EQ(read_config(config).rotary.substr(0, 8), "11101110");
  config["num_hidden_layers"] = 3;
  config["no_rope_layers"] = {1, 0, 1};
  EXPECT_EQ(read_config(config).rotary, "101");
}

TEST(Llama4, NormalisesQueriesAndKeysWithoutWeights) {
  Json config = of_type("llama4_text");
  const std::int64_t with = count_parameters(read_config(config)).total;
  EXPECT_TRUE(read_config(config).qk_norm_plain);
  config["use_qk_norm"] = false;
  EXPECT_FALSE(read_config(config).qk_norm);
  EXPECT_EQ(count_parameters(read_config(config)).total, with);
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

// Qwen/Qwen3-VL-8B-Instruct on the hub: 8767123696 parameters, of which 8190735360 are its text's.
TEST(Wrapper, CountsATowerWhoseShapesTheFileGives) {
  Json config = wrapper();
  config["vision_config"].update({{"in_channels", 3},
                                  {"patch_size", 16},
                                  {"temporal_patch_size", 2},
                                  {"spatial_merge_size", 2},
                                  {"out_hidden_size", 4096},
                                  {"num_position_embeddings", 2304},
                                  {"deepstack_visual_indexes", {8, 16, 24}}});
  EXPECT_THAT(read_config(config).warnings, ElementsAre(HasSubstr("width 1152, 576388336 parameters)")));
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
