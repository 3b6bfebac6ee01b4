#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_file.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string complaint_with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return complaint(config.dump());
}

TEST(BadConfig, GoodOneRaisesNoComplaint) {
  EXPECT_EQ(complaint(llama_config().dump()), "");
  EXPECT_EQ(complaint(mixtral_config().dump()), "");
  EXPECT_EQ(complaint(qwen3_moe_config().dump()), "");
}

class EveryField : public testing::TestWithParam<const char*> {};

TEST_P(EveryField, IsRequired) {
  Json config = llama_config();
  config.erase(GetParam());
  EXPECT_THAT(complaint(config.dump()), HasSubstr(std::string("/") + GetParam() + ": is required"));
}

TEST_P(EveryField, MustBeASanePositiveInteger) {
  for (const char* value : {"0", "-8", "1e300", "9223372036854775807", "18446744073709551615", "8.5", "\"8\"",
                            "true", "[8]", "{}"}) {
    const std::string said = complaint_with(llama_config(), GetParam(), Json::parse(value));
    EXPECT_THAT(said, HasSubstr(std::string("/") + GetParam())) << value;
    EXPECT_THAT(said, HasSubstr("must be an integer from 1 to")) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Llama, EveryField,
                         testing::Values("hidden_size", "num_hidden_layers", "num_attention_heads",
                                         "intermediate_size", "vocab_size"));

TEST(BadConfig, HeadsMustBeAMultipleOfKvHeads) {
  const std::string said = complaint_with(llama_config(), "num_key_value_heads", 5);
  EXPECT_THAT(said, HasSubstr("/num_key_value_heads: must divide num_attention_heads"));
  EXPECT_THAT(said, HasSubstr("nearest legal: 4 or 8"));
}

TEST(BadConfig, KvHeadsMayNotExceedHeads) {
  EXPECT_THAT(complaint_with(llama_config(), "num_key_value_heads", 64), HasSubstr("nearest legal: 32"));
}

TEST(BadConfig, HeadsMustDivideHiddenWithoutHeadDim) {
  EXPECT_THAT(complaint_with(llama_config(), "num_attention_heads", 48),
              HasSubstr("/num_attention_heads: must divide hidden_size"));
}

TEST(BadConfig, UnknownModelTypeNamesTheNearest) {
  const std::string said = complaint_with(llama_config(), "model_type", "lama");
  EXPECT_THAT(said, HasSubstr("/model_type: must be one of llama"));
  EXPECT_THAT(said, HasSubstr("nearest legal: llama"));
  EXPECT_THAT(complaint_with(llama_config(), "model_type", "mamba2"), Not(HasSubstr("nearest legal")));
}

TEST(BadConfig, FamilyMustBeNamed) {
  Json config = llama_config();
  config.erase("model_type");
  EXPECT_THAT(complaint(config.dump()), HasSubstr("/model_type: is required"));
  config["architectures"] = {"LlamaForCausalML"};
  EXPECT_THAT(complaint(config.dump()), HasSubstr("nearest legal: LlamaForCausalLM"));
  for (const char* value : {"[]", "\"LlamaForCausalLM\"", "[1]", "{}"}) {
    config["architectures"] = Json::parse(value);
    EXPECT_THAT(complaint(config.dump()), HasSubstr("must be an array of class names")) << value;
  }
}

TEST(BadConfig, WhatIsNoJsonObjectIsRefused) {
  for (const char* text :
       {"", "weights", "[]", "3", "null", "{\"model_type\": NaN}", "{\"model_type\": \"llama\""}) {
    EXPECT_NE(complaint(text), "") << text;
  }
}

TEST(BadConfig, DeepNestingIsRefused) {
  EXPECT_THAT(complaint("{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}"),
              HasSubstr("nests too deep"));
}

TEST(BadConfig, MissingFileIsNamed) {
  EXPECT_THROW(read_model(scratch().file("none/config.json")), InputError);
}

TEST(BadConfig, ExpertsPerTokenMayNotExceedExperts) {
  EXPECT_THAT(complaint_with(mixtral_config(), "num_experts_per_tok", 9),
              HasSubstr("must be an integer from 1 to 8"));
}

TEST(BadConfig, DenseLayersAmongSparseOnesMustBeLayers) {
  for (const char* value : {"[32]", "[0, -2]", "[1.5]", "[\"0\"]", "3"}) {
    EXPECT_THAT(complaint_with(qwen3_moe_config(), "mlp_only_layers", Json::parse(value)),
                HasSubstr("/mlp_only_layers"))
        << value;
  }
}

TEST(BadConfig, SwitchesMustBeTrueOrFalse) {
  EXPECT_THAT(complaint_with(llama_config(), "tie_word_embeddings", 1), HasSubstr("must be true or false"));
  EXPECT_THAT(complaint_with(llama_config(), "attention_bias", "no"), HasSubstr("must be true or false"));
}

TEST(BadConfig, NullIsSaidToBeNull) {
  EXPECT_THAT(complaint_with(llama_config(), "hidden_size", nullptr),
              HasSubstr("/hidden_size: is null; a value is required"));
}

std::vector<std::string> warnings_with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return read_config(config).warnings;
}

TEST(DoubtfulConfig, ValuesThatNoModelHasAreNamedWithTheirEffect) {
  for (const auto& [key, value, said] :
       {std::tuple{"hidden_act", "rickroll",
                   "hidden_act \"rickroll\" is not an activation of transformers: ignored"},
        {"torch_dtype", "int3", "torch_dtype \"int3\" is not a training type of PyTorch: ignored"},
        {"dtype", "fp7", "dtype \"fp7\""}}) {
    const auto warnings = warnings_with(llama_config(), key, value);
    ASSERT_EQ(warnings.size(), 1u) << key;
    EXPECT_THAT(warnings[0], HasSubstr(said));
  }
  EXPECT_THAT(
      warnings_with(llama_config(), "architectures", {"MixtralForCausalLM"}).at(0),
      HasSubstr("architectures [\"MixtralForCausalLM\"] disagrees with model_type \"llama\": ignored, the "
                "model is read as LlamaForCausalLM"));
}

TEST(DoubtfulConfig, WhatModelsHaveIsNotDoubted) {
  EXPECT_THAT(warnings_with(llama_config(), "hidden_act", "gelu_pytorch_tanh"), testing::IsEmpty());
  EXPECT_THAT(warnings_with(llama_config(), "torch_dtype", "torch.bfloat16"), testing::IsEmpty());
  EXPECT_THAT(warnings_with(llama_config(), "architectures", {"LlamaForCausalLM"}), testing::IsEmpty());
  for (const std::string& name : model_names())
    EXPECT_THAT(read_model(name).warnings, testing::IsEmpty()) << name;
}

}  // namespace
}  // namespace rehearse
