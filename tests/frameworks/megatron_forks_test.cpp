// Options and values that forks of Megatron-LM add: read, or named with their effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(MegatronForks, ReadRotaryPositionsAndWidthsByTheNamesOfPaiMegatronPatch) {
  const Imported found =
      megatron(kShape + "--vocab-size 512 --swiglu --position-embedding-type rotary --intermediate-size 704");
  EXPECT_EQ(found.model["position_embedding_type"], "rope");
  EXPECT_EQ(found.model["intermediate_size"], 704);
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("rotary"), HasSubstr("--model FILE"))));
  EXPECT_THAT(found.notes, Not(Contains(HasSubstr("unknown"))));
}

std::pair<bool, bool> frozen(const Imported& found) {
  const Json& plan = found.scenario["plan"];
  return {plan.value("freeze_tower", false), plan.value("freeze_projector", false)};
}

TEST(MegatronForks, SayWhichPartsOfAVisionModelAreTrained) {
  const std::string shape = kShape + "--vocab-size 512 ";
  EXPECT_EQ(frozen(megatron(shape)), std::pair(false, false));
  EXPECT_EQ(frozen(megatron(shape + "--freeze-ViT")), std::pair(true, false));
  EXPECT_EQ(frozen(megatron(shape + "--freeze-clip-vision-tower")), std::pair(true, false));
  EXPECT_THAT(megatron(shape + "--freeze-LM").notes,
              Contains(HasSubstr("of the language model are counted as trained")));
  const std::string swift = "megatron sft --model Qwen/Qwen3-VL-8B-Instruct --max_length 8192 ";
  EXPECT_EQ(frozen(megatron(swift)), std::pair(true, true)) << "ms-swift's defaults";
  EXPECT_EQ(frozen(megatron(swift + "--freeze_vit false --freeze_aligner false")), std::pair(false, false));
  EXPECT_EQ(frozen(megatron(swift + "--freeze_vit true --freeze_aligner false --freeze_llm false")),
            std::pair(true, false));
}

const std::string kSparse = kShape + "--vocab-size 512 --swiglu ";

TEST(MegatronForks, ReadExpertsOfMegatronDeepSpeed) {
  const auto read = [](const std::string& experts) {
    return megatron(kSparse + "--deepspeed --moe-expert-parallel-size 4 --num-experts " + experts);
  };
  const Imported sparse = read("64");
  EXPECT_EQ(sparse.scenario["plan"]["ep"], 4);
  EXPECT_EQ(sparse.model["num_experts"], 64);
  EXPECT_EQ(sparse.model["num_experts_per_tok"], 1) << "its default";
  EXPECT_EQ(sparse.model["moe_layer_freq"], "0101") << "every second layer";
  EXPECT_FALSE(read("64 --expert-interval 1").model.contains("moe_layer_freq"));
  EXPECT_EQ(read("64 64").model["num_experts"], 64);
  EXPECT_FALSE(read("1").model.contains("num_experts")) << "a dense network";
  EXPECT_FALSE(megatron(kSparse + "--num-experts 8 --expert-interval 2 --moe-token-dispatcher-type alltoall")
                   .model.contains("moe_layer_freq"))
      << "of Megatron core";
  EXPECT_THAT(
      refusal([&] { read("32 32 64"); }),
      AllOf(HasSubstr("--num-experts"), HasSubstr("different numbers of experts"), HasSubstr("32 32 64")));
  EXPECT_THAT(read("64 --mlp-type residual").notes,
              Contains(HasSubstr("--mlp-type residual is approximated")));
  EXPECT_THAT(refusal([] { megatron(kSparse + "--num-experts 8 8 --num-layers 4 4"); }),
              HasSubstr("takes one value"));
}

TEST(MegatronForks, ReadNetworksOfMindSpeed) {
  const Imported found = megatron(
      kSparse +
      "--num-experts 8 --moe-ffn-hidden-size 64 --n-shared-experts 2 --first-k-dense-replace 1 "
      "--moe-layer-freq 1 --multi-head-latent-attention --qk-nope-head-dim 96 --qk-rope-head-dim 32");
  EXPECT_EQ(found.model["moe_layer_freq"], "0111");
  EXPECT_EQ(found.model["moe_shared_expert_intermediate_size"], 128);
  EXPECT_EQ(found.model["qk_nope_head_dim"], 96);
  EXPECT_EQ(found.model["qk_rope_head_dim"], 32);
  EXPECT_THAT(found.notes, Not(Contains(HasSubstr("unknown"))));
  EXPECT_FALSE(
      megatron(kSparse + "--num-experts 8 --first-k-dense-replace -1").model.contains("moe_layer_freq"));
  EXPECT_THAT(refusal([] { megatron(kSparse + "--position-embedding-type deepseek4"); }),
              AllOf(HasSubstr("DeepSeek-V4"), HasSubstr("--model config.json")));
  ImportRequest request;
  request.over["/model"] = "deepseek-v4.json";
  EXPECT_NO_THROW(import_megatron(kSparse + "--position-embedding-type deepseek4", "train.sh", request));
}

TEST(MegatronForks, ReadPlansOfMindSpeed) {
  const auto read = [](const std::string& flags) { return megatron(kSparse + flags); };
  EXPECT_EQ(read("--context-parallel-algo ulysses_cp_algo").scenario["plan"]["cp_comm_type"], "a2a");
  EXPECT_THAT(read("--context-parallel-algo hybrid_cp_algo").notes,
              Contains(HasSubstr("hybrid_cp_algo is modelled as p2p")));
  EXPECT_EQ(read("--num-layer-list 1,3").scenario["plan"]["layers_per_stage"], Json({1, 3}));
  EXPECT_THAT(refusal([&] { read("--num-layers 4 --pipeline-model-parallel-size 3 --num-layer-list 1,x"); }),
              HasSubstr("nearest legal: 2,1,1"));
  EXPECT_EQ(read("--schedules-method dualpipev").scenario["plan"]["schedule"], "dualpipe-v");
  EXPECT_THAT(read("--use-ascend-mc2").notes, Contains(HasSubstr("not beside them")));
  EXPECT_THAT(read("--swap-optimizer --stage sft").notes,
              Contains(HasSubstr("counted on the GPU: more memory")));
  EXPECT_THAT(read("--use-fused-rmsnorm --use-fused-swiglu --stage sft").notes,
              Not(Contains(HasSubstr("unknown"))));
}

TEST(MegatronForks, SayWhichVocabularyTheirTokenizersGive) {
  const auto words = [](const std::string& flags) { return megatron(kShape + flags).model["vocab_size"]; };
  EXPECT_EQ(words("--tokenizer-type KimiK2Tokenizer"), 163840);
  EXPECT_EQ(words("--tokenizer-type Qwen2TokenizerFS"), 151680) << "FlagScale's, which is no misspelling";
  EXPECT_EQ(words("--tokenizer-type PretrainedFromHF --tokenizer-name-or-path /data/Llama-2-7b"), 32000);
  EXPECT_EQ(words("--patch-tokenizer-type LLamaTokenizer --extra-vocab-size 80"), 32080)
      << "Pai-Megatron-Patch";
  for (const char* type : {"Lfm2Tokenizer", "TokenizerFromFile"})
    EXPECT_THAT(megatron(kShape + "--tokenizer-type " + type).notes,
                Contains(AllOf(HasSubstr(type), HasSubstr("does not state its vocabulary"),
                               HasSubstr("--vocab-size"))));
}

}  // namespace
}  // namespace rehearse
