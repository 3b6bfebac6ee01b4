// Are the options of Megatron-DeepSpeed read as its own sources read them?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/imported.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kModel =
    "--num-layers 4 --hidden-size 256 --num-attention-heads 8 --max-position-embeddings 512 --vocab-size 600 "
    "--seq-length 512 --micro-batch-size 1 --global-batch-size 16 --bf16 ";

Imported of(const std::string& flags) {
  return import_megatron(kModel + flags, "train.sh");
}

TEST(MegatronDeepSpeed, IsMegatronsModelInTheEngineOfDeepSpeed) {
  const Imported found = of("--deepspeed --deepspeed_config ds.json --zero-stage 3");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["framework"], "deepspeed");
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_FALSE(plan.contains("overlap_grad_reduce")) << "the default of the engine";
  EXPECT_FALSE(plan.contains("recipe"));
  EXPECT_EQ(plan["fused_attention"], false) << "--transformer-impl is local by default";
  EXPECT_THAT(found.notes, Contains(HasSubstr("--deepspeed-config is ignored")));
  EXPECT_FALSE(of("--deepspeed --use-flash-attn-v2").scenario["plan"].contains("fused_attention"));
  EXPECT_EQ(of("--zero-stage 1").scenario["plan"]["framework"], "megatron-core");
  const Imported bare = of("--deepspeed");
  EXPECT_EQ(bare.scenario["plan"]["zero"], 1);
  EXPECT_THAT(bare.notes, Contains(HasSubstr("--zero-stage is not given")));
}

const std::string kEngine = R"({"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 0.5,
  "zero_optimization": {"stage": $STAGE, "overlap_comm": true, "offload_optimizer": {"device": "cpu"}}})";

std::string with_engine_file(const std::string& flags) {
  return "STAGE=2\nCONF=conf/ds.json\ncat <<EOT > $CONF\n" + kEngine + "\nEOT\ntorchrun pretrain_gpt.py " +
         kModel + "--deepspeed --deepspeed_config=$CONF " + flags + "\n";
}

TEST(MegatronDeepSpeed, EngineFollowsTheFileThatTheScriptWrites) {
  const Imported found =
      import_megatron(with_engine_file("--zero-stage 1 --bf16 --clip-grad 1.0"), "train.sh");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["zero"], 2);
  EXPECT_EQ(plan["offload"], "optimizer");
  EXPECT_EQ(plan["overlap_grad_reduce"], true);
  EXPECT_EQ(plan["clip_grad"], 0.5);
  EXPECT_EQ(plan["precision"], "bf16") << "of the parameters";
  EXPECT_THAT(found.notes, Contains(HasSubstr("--zero-stage 1 gives way to stage 2 of conf/ds.json")));
  EXPECT_THAT(found.notes, Contains(HasSubstr("conf/ds.json has precision \"fp32\"")));
  EXPECT_THAT(found.notes, Not(Contains(HasSubstr("is not read"))));
  EXPECT_EQ(fate_of(found, "zero_optimization/stage"), "used");
}

TEST(MegatronDeepSpeed, EngineFollowsTheFileThatTheUserNames) {
  ImportRequest request;
  request.shell.files["ds.json"] = R"({"bf16": {"enabled": true}})";
  const std::string text =
      "torchrun pretrain_gpt.py " + std::string(kModel) + "--bf16 --deepspeed --deepspeed_config a/ds.json\n";
  const Imported found = import_megatron(text, "train.sh", request);
  EXPECT_EQ(found.scenario["plan"]["zero"], 0) << "the file has no section of ZeRO";
  EXPECT_EQ(found.scenario["plan"]["clip_grad"], 0);
  EXPECT_THAT(found.notes, Not(Contains(HasSubstr("--zero-stage"))));
}

TEST(MegatronDeepSpeed, TakesAnEngineFileWithAnOpenName) {
  const std::string text = "torchrun pretrain_gpt.py " + std::string(kModel) +
                           "--bf16 --deepspeed --deepspeed_config $(date +%s).json --zero-stage 2\n";
  const Imported found = import_megatron(text, "train.sh");
  EXPECT_EQ(found.scenario["plan"]["zero"], 2);
  EXPECT_THAT(found.notes, Contains(HasSubstr("--deepspeed-config is ignored: its settings are not read")));
}

TEST(MegatronDeepSpeed, RefusesAnEngineFileThatTheScriptDoesNotDecide) {
  const std::string text = with_engine_file("").substr(std::string("STAGE=2\n").size());
  EXPECT_THAT(
      refusal([&] { import_megatron(text, "train.sh"); }),
      AllOf(HasSubstr("values that it does not decide"), HasSubstr("rehearse import train.sh STAGE=VALUE")));
}

TEST(MegatronOptions, OfOneEffectShareANote) {
  const Imported found = of("--vision-model-type clip --pixel-shuffle --freeze-LM --prompt-path a.json");
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("--pixel-shuffle, --vision-model-type are ignored"),
                                          HasSubstr("the vision model is not counted"))));
  EXPECT_THAT(found.notes, Contains(HasSubstr("--freeze-LM is ignored: all parameters")));
  EXPECT_EQ(fate_of(found, "--pixel-shuffle"), "ignored");
}

TEST(MegatronDeepSpeed, SequenceParallelismIsThatOfUlysses) {
  const Json plan = of("--deepspeed --zero-stage 1 --ds-sequence-parallel-size 4").scenario["plan"];
  EXPECT_EQ(plan["cp"], 4);
  EXPECT_EQ(plan["cp_comm_type"], "a2a");
  EXPECT_FALSE(
      of("--deepspeed --zero-stage 1 --ds-sequence-parallel-size 1").scenario["plan"].contains("cp"));
  EXPECT_EQ(of("--num-key-value-heads 2").model["num_key_value_heads"], 2);
  EXPECT_EQ(of("--deepspeed --enable-zbh1-pipeline").scenario["plan"]["schedule"], "zb-h1");
}

// Two experts for a token in every layer were counted, where the program has one in every second layer.
TEST(MegatronDeepSpeed, ExpertsAreInEverySecondLayer) {
  const std::string experts = "--deepspeed --zero-stage 1 --num-experts 8 --moe-expert-parallel-size 2 ";
  const Imported found = of(experts);
  EXPECT_EQ(found.model["num_experts"], 8);
  EXPECT_EQ(found.model["num_experts_per_tok"], 1);
  EXPECT_EQ(found.model["moe_layer_freq"], "0101");
  EXPECT_EQ(found.scenario["plan"]["ep"], 2);
  EXPECT_EQ(found.scenario["plan"]["moe_capacity"], 1);
  EXPECT_THAT(found.notes, Not(Contains(HasSubstr("--moe-token-dispatcher-type"))));
  EXPECT_FALSE(of(experts + "--expert-interval 1").model.contains("moe_layer_freq"));
  EXPECT_EQ(of(experts + "--topk 2 --moe-train-capacity-factor 1.5").model["num_experts_per_tok"], 2);
  EXPECT_EQ(of(experts + "--moe-train-capacity-factor 1.5").scenario["plan"]["moe_capacity"], 1.5);
  EXPECT_FALSE(of(experts + "--disable-moe-token-dropping").scenario["plan"].contains("moe_capacity"));
  EXPECT_EQ(of(experts + "--tensor-model-parallel-size 2").scenario["plan"]["etp"], 1);
  EXPECT_FALSE(of(experts + "--tensor-model-parallel-size 2 --enable-expert-tensor-parallelism")
                   .scenario["plan"]
                   .contains("etp"));
  const Imported residual = of(experts + "--mlp-type residual");
  EXPECT_EQ(residual.model["moe_shared_expert_intermediate_size"], 1024);
  EXPECT_THAT(residual.notes, Contains(HasSubstr("--mlp-type residual is approximated")));
  EXPECT_FALSE(of("--deepspeed --zero-stage 1 --num-experts 1").model.contains("num_experts"))
      << "a dense model";
  EXPECT_THAT(refusal([&] { of(experts + "--expert-interval 5"); }),
              HasSubstr("at most the number of layers"));
  EXPECT_THAT(refusal([&] { of("--deepspeed --num-experts"); }), HasSubstr("--num-experts: needs a value"));
  EXPECT_THAT(refusal([&] { of(experts + "--num-layers 2000000000"); }),
              HasSubstr("--num-layers: must be at most 4096"));
}

}  // namespace
}  // namespace rehearse
