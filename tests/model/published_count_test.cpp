// Parameter counts against those that were published, to the last digit.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "model/read.h"

namespace rehearse {
namespace {

struct Published {
  const char* model;
  std::int64_t total;
  const char* where;
};

std::ostream& operator<<(std::ostream& out, const Published& published) {
  return out << published.model;
}

class PublishedCount : public testing::TestWithParam<Published> {};

TEST_P(PublishedCount, EqualsOursToTheLastDigit) {
  const auto& [model, total, where] = GetParam();
  EXPECT_EQ(count_parameters(read_model(model)).total, total) << where;
}

constexpr const char* kHub = "Hugging Face hub, safetensors metadata of the repository: total parameters";

INSTANTIATE_TEST_SUITE_P(
    Models, PublishedCount,
    testing::Values(
        Published{"gpt2", 124'439'808, "Radford et al. 2019, as counted by transformers (GPT2LMHeadModel)"},
        Published{"gpt-neox-20b", 20'554'567'680, "model card of EleutherAI/gpt-neox-20b: n_parameters"},
        Published{"llama2-7b", 6'738'415'616, kHub},
        Published{"llama2-13b", 13'015'864'320,
                  "as 13B LLaMA by transformers; the hub adds 40 x 64 rotary frequencies"},
        Published{"llama2-70b", 68'976'648'192,
                  "Together fine-tuning table; the hub adds 80 x 64 rotary frequencies"},
        Published{"llama3-8b", 8'030'261'248, kHub}, Published{"llama3-70b", 70'553'706'496, kHub},
        Published{"llama3.1-405b", 405'853'388'800, kHub}, Published{"mistral-7b", 7'241'732'096, kHub},
        Published{"mixtral-8x7b", 46'702'792'704, kHub},
        Published{"mixtral-8x22b", 140'620'634'112,
                  "hub: 140630071296 with 32768 tokens, less 2 x 768 x 6144 of v0.1's 32000"},
        Published{"qwen2.5-7b", 7'615'616'512, kHub}, Published{"qwen3-8b", 8'190'735'360, kHub},
        Published{"qwen3-30b-a3b", 30'532'122'624, kHub}, Published{"qwen3-235b-a22b", 235'093'634'560, kHub},
        Published{
            "nemotron3-super-120b-a12b", 123'611'033'088,
            "NVIDIA-NeMo/Megatron-Bridge, model_verification_cards/nemotron-3-super-120b-a12b: elements"},
        Published{"gpt-oss-120b", 116'829'156'672, kHub}, Published{"gpt-oss-20b", 20'914'757'184, kHub}));

// DeepSeek-V3's README_WEIGHTS.md states 11.5B parameters of an MTP layer's own, of which 1.5B compute for a
// token with the head. Both numbers match, to their digits, the layer without its projection (equation 21).
constexpr double kProjection = 2.0 * 7168 * 7168;

TEST(PublishedCount, OfDeepSeekV3TellsItsModuleOfMultiTokenPredictionApart) {
  const ParameterCount count = count_parameters(read_model("deepseek-v3"));
  EXPECT_EQ(count.total - count.mtp, 671'026'419'200);  // headers of the checkpoint's main model
  EXPECT_NEAR(static_cast<double>(count.mtp) - kProjection, 11.5e9, 0.05e9);
}

struct Rounded {
  const char* model;
  double total;
  double active;
  double half_digit;
  const char* where;
};

std::ostream& operator<<(std::ostream& out, const Rounded& rounded) {
  return out << rounded.model;
}

class RoundedCount : public testing::TestWithParam<Rounded> {};

TEST_P(RoundedCount, EqualsOursToThePrintedDigits) {
  const Rounded& rounded = GetParam();
  const ParameterCount count = count_parameters(read_model(rounded.model));
  EXPECT_NEAR(static_cast<double>(count.total), rounded.total, rounded.half_digit) << rounded.where;
  EXPECT_NEAR(static_cast<double>(count.active), rounded.active, rounded.half_digit) << rounded.where;
}

INSTANTIATE_TEST_SUITE_P(Models, RoundedCount,
                         testing::Values(Rounded{"mixtral-8x7b", 46.7e9, 12.9e9, 0.05e9,
                                                 "Jiang et al. 2024: 47B, 12.9B active"},
                                         Rounded{"nemotron4-340b", 341e9, 341e9, 0.5e9,
                                                 "Nemotron-4 340B: 9.4B embedding, 331.6B others"},
                                         Rounded{"nemotron4-15b", 15.6e9, 15.6e9, 0.05e9,
                                                 "Nemotron-4 15B: 3.2B embedding, 12.5B others"}));

TEST(ActiveCount, OfDeepSeekV3IsThatOfItsReadmeWithoutTheInputEmbedding) {
  Model model = read_model("deepseek-v3");
  const std::int64_t with_module = count_parameters(model).active;
  model.mtp_layers = 0;
  const ParameterCount alone = count_parameters(model);
  EXPECT_NEAR(static_cast<double>(alone.active - alone.embedding), 36.6e9, 0.05e9);  // README_WEIGHTS.md
  EXPECT_NEAR(static_cast<double>(with_module - alone.active + alone.head) - kProjection, 1.5e9, 0.05e9);
}

TEST(ActiveCount, OfQwen3Moe) {  // model cards of Qwen3-30B-A3B and Qwen3-235B-A22B: 3.3B and 22B activated
  EXPECT_NEAR(static_cast<double>(count_parameters(read_model("qwen3-30b-a3b")).active), 3.3e9, 0.06e9);
  EXPECT_NEAR(static_cast<double>(count_parameters(read_model("qwen3-235b-a22b")).active), 22e9, 0.5e9);
}

TEST(ActiveCount, OfGptOssIsThatOfItsModelCardWithoutTheInputEmbedding) {  // table 1: 5.13B and 3.61B
  for (const auto& [name, active] : {std::pair{"gpt-oss-120b", 5.13e9}, {"gpt-oss-20b", 3.61e9}}) {
    const ParameterCount count = count_parameters(read_model(name));
    EXPECT_NEAR(static_cast<double>(count.active - count.embedding), active, 0.005e9) << name;
  }
}

// model_verification_cards/nemotron-3.5-lightning of NVIDIA-NeMo/Megatron-Bridge: 32913266240, one module
// more. NVIDIA 2025, Nemotron 3 Nano, table 1: 31.6B, 3.6B of them active with the embeddings.
TEST(PublishedCount, OfNemotron3NanoIsExactWithTheModuleOfItsSuccessor) {
  Model model = read_model("nemotron3-nano-30b-a3b");
  const ParameterCount alone = count_parameters(model);
  EXPECT_NEAR(static_cast<double>(alone.total), 31.6e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(alone.active), 3.6e9, 0.05e9);
  model.mtp_layers = 2;
  model.mtp_pattern = "*E";
  model.mtp_repeated = true;
  EXPECT_EQ(count_parameters(model).total, 32'913'266'240);
}

// NVIDIA 2026, Nemotron 3 Super: 120.6B without the module, 12.7B active.
TEST(ActiveCount, OfNemotron3SuperIsThatOfItsReport) {
  Model model = read_model("nemotron3-super-120b-a12b");
  model.mtp_layers = 0;
  EXPECT_NEAR(static_cast<double>(count_parameters(model).total), 120.6e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(count_parameters(model).active), 12.7e9, 0.1e9);
}

TEST(ActiveCount, OfMixtral8x22b) {  // Mistral AI 2024: 141B, 39B active
  const ParameterCount count = count_parameters(read_model("mixtral-8x22b"));
  EXPECT_NEAR(static_cast<double>(count.total), 141e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(count.active), 39e9, 0.5e9);
}

TEST(Grok1, CountsWithinAHundredthOfTheReadme) {  // xai-org/grok-1 README.md: 314B
  EXPECT_NEAR(static_cast<double>(count_parameters(read_model("grok-1")).total), 314e9, 3.14e9);
}

struct Sc21 {
  const char* size;
  double billions;
};

std::ostream& operator<<(std::ostream& out, const Sc21& row) {
  return out << row.size;
}

class Sc21Count : public testing::TestWithParam<Sc21> {};

// Narayanan et al. 2021 (SC21), equation 2 and table 1. The equation leaves out the last norm.
TEST_P(Sc21Count, FollowsEquationTwoAndRoundsToTheTable) {
  const Model model = read_model(std::string("sc21-") + GetParam().size);
  const auto l = static_cast<double>(model.layers);
  const auto h = static_cast<double>(model.hidden);
  const double table_and_positions = static_cast<double>(model.vocab + model.max_positions);
  const double equation = 12 * l * h * h * (1 + 13 / (12 * h) + table_and_positions / (12 * l * h));
  const ParameterCount count = count_parameters(model);
  EXPECT_NEAR(static_cast<double>(count.total - count.final_norm), equation, 1e-12 * equation);
  EXPECT_NEAR(std::round(static_cast<double>(count.total) / 1e8) / 10, GetParam().billions, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Table1, Sc21Count,
                         testing::Values(Sc21{"1.7b", 1.7}, Sc21{"3.6b", 3.6}, Sc21{"7.5b", 7.5},
                                         Sc21{"18.4b", 18.4}, Sc21{"39.1b", 39.1}, Sc21{"76.1b", 76.1},
                                         Sc21{"145.6b", 145.6}, Sc21{"310.1b", 310.1}, Sc21{"529.6b", 529.6},
                                         Sc21{"1008b", 1008.0}));

struct Korthikanti {
  const char* model;
  double billions;
};

std::ostream& operator<<(std::ostream& out, const Korthikanti& row) {
  return out << row.model;
}

class KorthikantiCount : public testing::TestWithParam<Korthikanti> {};

// Korthikanti et al. 2022, table 3.
TEST_P(KorthikantiCount, CarriesTheSizeOfItsName) {
  const double total = static_cast<double>(count_parameters(read_model(GetParam().model)).total);
  EXPECT_NEAR(total / 1e9, GetParam().billions, 0.01 * GetParam().billions);
}

INSTANTIATE_TEST_SUITE_P(Table3, KorthikantiCount,
                         testing::Values(Korthikanti{"gpt-22b", 22}, Korthikanti{"gpt3-175b", 175},
                                         Korthikanti{"gpt-530b", 530}, Korthikanti{"gpt-1t", 1008}));

}  // namespace
}  // namespace rehearse
