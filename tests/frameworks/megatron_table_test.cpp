// The table's statement about each option of Megatron-LM agrees with the reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/megatron_options.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The runs differ, because an option without effect in one run may have an effect in another.
constexpr const char* kRuns[] = {
    "--disable-bias-linear --hidden-size 256 --num-layers 4 --num-attention-heads 4",
    "--bf16 --hidden-size 256 --num-layers 4 --num-attention-heads 4 --group-query-attention",
    "--fp16 --hidden-size 256 --num-layers 4 --num-attention-heads 4 --checkpoint-activations "
    "--transformer-impl local --no-gradient-accumulation-fusion",
    "--bf16 --hidden-size 256 --num-layers 4 --num-attention-heads 4 --num-experts 8 --swiglu "
    "--expert-model-parallel-size 2 --moe-token-dispatcher-type flex --recompute-granularity selective",
    "--bf16 --hidden-size 256 --num-layers 4 --num-attention-heads 4 --num-experts 8 --swiglu "
    "--expert-model-parallel-size 2 --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep "
    "--fp8-format e4m3 --fp8-recipe mxfp8 --moe-layer-freq 2",
    "--bf16 --hidden-size 256 --num-layers 4 --num-attention-heads 4 --multi-latent-attention --multiple-of "
    "256",
    "--bf16 --hidden-size 256 --num-layers 4 --num-attention-heads 4 --use-megatron-fsdp --zero-stage 1 "
    "--recompute-granularity full",
    "--bf16 --hidden-size 256 --num-layers 8 --num-attention-heads 4 --pipeline-model-parallel-size 2 "
    "--num-layers-per-virtual-pipeline-stage 1 --use-torch-fsdp2 --nproc-per-node 8 "
    "--activations-checkpoint-method uniform --first-last-layers-bf16 --window-size 127,0",
    "--bf16 --hidden-size 256 --num-layers 8 --num-attention-heads 4 --pipeline-model-parallel-size 2 "
    "--enable-zero-bubble --use-distributed-optimizer --nproc-per-node 16 --fp4-format e2m1",
    "--bf16 --hidden-size 256 --num-layers 8 --num-attention-heads 4 --pipeline-model-parallel-size 2 "
    "--zero-bubble-v-schedule --fp8-format hybrid --enable-cuda-graph --cross-entropy-loss-fusion",
    "--deepspeed --zero-stage 1 --bf16 --hidden-size 256 --num-layers 8 --num-attention-heads 4 "
    "--num-experts 8 --moe-expert-parallel-size 2 --tensor-model-parallel-size 2",
    "--bf16 --hidden-size 256 --hybrid-layer-pattern M*-E/*E --num-attention-heads 4 --num-experts 8 "
    "--vocab-size 600",
    "--hidden-size 256 --num-layers 4 --num-attention-heads 4 --actor-num-nodes 1 --max-tokens-per-gpu 4096 "
    "--rollout-max-response-len 512 --rollout-batch-size 8 --num-steps-per-rollout 2",
    "--hidden-size 256 --num-layers 4 --num-attention-heads 4 --actor-num-nodes 1 --use-dynamic-batch-size",
    "--bf16 --hidden-size 256 --hybrid-layer-pattern M*-E --mtp-num-layers 1 --num-attention-heads 4 "
    "--num-experts 8 --vocab-size 600"};

std::vector<std::string> values_for(const MegatronOption& option) {
  if (option.takes == OptionTakes::nothing) return {""};
  if (!option.choices.empty()) return option.choices;
  if (option.takes == OptionTakes::integer) return {"2", "64"};
  if (option.takes == OptionTakes::number) return {"2", "0"};
  return {"[0,1,1,1]", "M*",    "7,0",     "learnable", "adafactor",        "rope",         "sgd",
          "*",         "Qwen2", "Qwen2.5", "full",      "GPT2BPETokenizer", "NullTokenizer"};
}

// Whether the option changes the scenario of at least one run.
bool counts(const MegatronOption& option) {
  for (const std::string run : kRuns)
    for (const std::string& value : values_for(option)) {
      std::string with, without;
      const auto answer = [](const std::string& flags) {
        const Imported found = import_megatron(flags, "train.sh");
        std::string notes;
        for (const std::string& note : found.notes) notes += note + "\n";
        return found.scenario.dump() + found.model.dump() + notes;
      };
      const std::string rest = " --max-position-embeddings 64 ";
      without = refusal([&] { throw InputError({answer(run + rest), "", "", "", ""}); });
      with = refusal([&] {
        throw InputError({answer(run + rest + option.name() + " " + value), "", "", "", ""});
      });
      if (with != without) return true;
    }
  return false;
}

TEST(MegatronTable, EveryOptionThatIsReadCounts) {
  for (const MegatronOption& option : megatron_options()) {
    const bool is_read = option.role == OptionRole::combined || option.role == OptionRole::shape ||
                         option.role == OptionRole::field;
    EXPECT_TRUE(!is_read || counts(option)) << option.name();
  }
}

TEST(MegatronTable, ReadsAnOptionByItsOlderNames) {
  const Imported found = megatron(kShape +
                                  "--vocab-size 800 --model-parallel-size 4 --batch-size 3 "
                                  "--encoder-seq-length 128 --cpu-optimizer");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["tp"], 4);
  EXPECT_EQ(plan["micro_batch"], 3);
  EXPECT_EQ(plan["seq"], 128);
  EXPECT_EQ(plan["offload"], "optimizer");
  EXPECT_EQ(found.model["vocab_size"], 1024) << "padded for each of four ranks";
}

TEST(MegatronTable, NotesUnmodelledOptionsButForWhatIsCounted) {
  const auto notes = [](const std::string& flags) { return megatron(kShape + flags).notes; };
  EXPECT_THAT(notes("--optimizer-offload-fraction 0.5"), Contains(HasSubstr("the whole optimizer state")));
  EXPECT_THAT(notes("--optimizer-offload-fraction 1.0"), Not(Contains(HasSubstr("offload-fraction"))));
  EXPECT_THAT(notes("--rerun-mode report_stats"), Contains(HasSubstr("as run once")));
  EXPECT_THAT(notes("--rerun-mode disabled"), Not(Contains(HasSubstr("--rerun-mode"))));
  EXPECT_THAT(notes("--hybrid-attention-ratio 0.0"), Not(Contains(HasSubstr("--hybrid-attention-ratio"))));
  EXPECT_THAT(notes("--empty-unused-memory-level 1"), Contains(HasSubstr("to release cached memory")));
  EXPECT_THAT(notes("--optimizer adamw-bnb-8bit"), Contains(HasSubstr("adamw-bnb-8bit"))) << "of a fork";
}

TEST(MegatronVocabulary, IsAssumedAloudWhereTheTokenizerDoesNotTell) {
  const auto notes = [](const std::string& flags) {
    return megatron(
               "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --max-position-embeddings 512 " +
               flags)
        .notes;
  };
  EXPECT_THAT(notes("--tokenizer-type Llama2Tokenizer --tokenizer-model /models/own-100k.model"),
              Contains(AllOf(HasSubstr("32000 words are assumed"), HasSubstr("--vocab-size"))));
  EXPECT_THAT(notes("--tokenizer-type Llama2Tokenizer --tokenizer-model /models/Llama-2-7b/tokenizer.model"),
              Contains(HasSubstr("taken to hold 32000")));
  EXPECT_THAT(notes("--vocab-file own-vocab.json --merge-file own-merges.txt"),
              Contains(HasSubstr("50257 words are assumed")));
  EXPECT_THAT(notes("--vocab-file data/gpt2-vocab.json --merge-file data/gpt2-merges.txt"),
              Not(Contains(HasSubstr("assumed"))));
  EXPECT_THAT(notes("--tokenizer-type BertWordPieceCase"), Contains(HasSubstr("28996 words are assumed")));
}

TEST(MegatronScript, KeepsOptionsBehindAPlaceholder) {
  EXPECT_EQ(
      megatron("train.py " + kShape + "--save <PATH TO CHECKPOINTS> --fp16").scenario["plan"]["precision"],
      "fp16");
  EXPECT_EQ(megatron("train.py " + kShape + "--bf16 >log 2>&1").scenario["plan"]["precision"], "bf16");
}

TEST(MegatronScript, TakesAVariableAsEmptyThatNoBranchSetsThatRuns) {
  const std::string script =
      "for one in \"$@\"; do case $one in --profiling=*) profiling=${one#*=} ;; esac; done\n"
      "APP=\"train.py " +
      kShape + "--bf16\"\nif [[ $profiling == \"hip\" ]]; then\n  APP=\"hipprof ${APP}\"\nfi\n${APP}\n";
  const Imported found = megatron(script);
  EXPECT_EQ(found.scenario["plan"]["precision"], "bf16");
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("line 3: $profiling is set in no branch that runs"),
                                          HasSubstr("profiling=VALUE"))));
}

TEST(MegatronScript, LoopsOverArgumentsThatTheUserHandsIn) {
  const std::string script =
      "TP=1\nfor one in $*; do\n  case $one in --tp=*) TP=${one#*=} ;; esac\ndone\n"
      "for one; do if [ $one = wide ]; then SEQ=8192; fi; done\n"
      "train.py " +
      kShape + "--tensor-model-parallel-size $TP --seq-length ${SEQ:-4096}";
  EXPECT_EQ(megatron(script).scenario["plan"]["tp"], 1);
  ImportRequest request;
  request.shell.arguments = {"--tp=4", "wide"};
  const Json plan = import_megatron(script, "train.sh", request).scenario["plan"];
  EXPECT_EQ(plan["tp"], 4);
  EXPECT_EQ(plan["seq"], 8192);
}

}  // namespace
}  // namespace rehearse
