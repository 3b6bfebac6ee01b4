// Flags of Megatron-LM as scenarios; data/README.md names the samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/imported.h"
#include "frameworks/megatron_options.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

TEST(ImportMegatron, ReadsTheSampleScriptOfGpt3) {
  const Imported found = megatron(text_of("gpt3_175b.sh"));
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 128);
  EXPECT_EQ(plan["tp"], 8);
  EXPECT_EQ(plan["pp"], 16);
  EXPECT_EQ(plan["micro_batch"], 1);
  EXPECT_EQ(plan["global_batch"], 1536);
  EXPECT_EQ(plan["seq"], 2048);
  EXPECT_EQ(plan["precision"], "fp16");
  EXPECT_EQ(plan["overlap_grad_reduce"], false) << "Megatron-LM does so only when told to";
  EXPECT_EQ(found.model["model_type"], "megatron_gpt");
  EXPECT_EQ(found.model["num_hidden_layers"], 96);
  EXPECT_EQ(found.model["hidden_size"], 12288);
  EXPECT_EQ(found.model["vocab_size"], 51200) << "50257 padded to a multiple of 128 x 8";
  EXPECT_THAT(found.notes, UnorderedElementsAre(HasSubstr("--rampup-batch-size is ignored"),
                                                HasSubstr("50257 words are assumed"),
                                                AllOf(HasSubstr("line 23"), HasSubstr("--log-interval"))))
      << "a comment ends the command before its last line";
}

// Nemotron 3 Nano as slime's script starts it, in four stages and with modules.
constexpr const char* kHybrid =
    "--hybrid-layer-pattern MEMEM*E|MEMEM*E|MEMEM|*EME/*E/*E --mtp-use-repeated-layer --hidden-size 2688 "
    "--ffn-hidden-size 1856 --num-attention-heads 32 --group-query-attention --num-query-groups 2 "
    "--kv-channels 128 "
    "--mamba-num-heads 64 --moe-grouped-gemm --num-experts 128 --moe-router-topk 6 "
    "--moe-shared-expert-intermediate-size 3712 "
    "--moe-latent-size 1024 --squared-relu --disable-bias-linear --normalization RMSNorm --seq-length 8192 "
    "--position-embedding-type none --max-position-embeddings 8192 --vocab-size 131072 --micro-batch-size 1 "
    "--untie-embeddings-and-output-weights --pipeline-model-parallel-size 2 --global-batch-size 8 ";

TEST(ImportMegatron, ReadsHybridModelsAndTheirStages) {
  const Imported found = megatron(std::string(kHybrid) + "--bf16");
  EXPECT_EQ(found.model["hybrid_override_pattern"], "MEMEM*EMEMEM*EMEMEM*EME");
  EXPECT_EQ(found.model["num_hidden_layers"], 23);
  EXPECT_EQ(found.model["mamba_num_heads"], 64);
  EXPECT_EQ(found.model["mamba_head_dim"], 64) << "Megatron-LM's own";
  EXPECT_EQ(found.model["num_nextn_predict_layers"], 2);
  EXPECT_EQ(found.model["mtp_hybrid_override_pattern"], "*E");
  EXPECT_EQ(found.model["mtp_use_repeated_layer"], true);
  EXPECT_EQ(found.model["moe_latent_size"], 1024);
  EXPECT_EQ(found.scenario["plan"]["layers_per_stage"], Json({7, 7, 5, 4}));
  EXPECT_EQ(found.scenario["plan"]["vpp"], 2);
  EXPECT_THAT(found.notes, IsEmpty());
  const std::string whole = std::string(kHybrid) + "--cuda-graph-impl transformer_engine --bf16";
  EXPECT_EQ(megatron(whole).scenario["plan"]["cuda_graph_modules"], "attn,mamba,moe");
}

TEST(ImportMegatron, LetsThePatternWinOverTheNumberOfLayers) {
  const Imported found = megatron(std::string(kHybrid) + "--bf16 --num-layers 12");
  EXPECT_EQ(found.model["num_hidden_layers"], 23);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("--num-layers 12 is ignored: the pattern has 23 layers")));
  EXPECT_EQ(fate_of(found, "--num-layers"), "ignored");
}

TEST(ImportMegatron, RefusesLayersOfHybridsThatHaveNoModel) {
  const auto with = [](const std::string& pattern) {
    return refusal([&] { megatron(std::string(kHybrid) + "--hybrid-layer-pattern " + pattern); });
  };
  EXPECT_THAT(with("MGM*"), HasSubstr("the layer G is not supported"));
  EXPECT_THAT(with("M*/*E/M"), HasSubstr("all MTP layers must be the same"));
  EXPECT_THAT(with("\"|\""), HasSubstr("has no layer"));
}

TEST(ImportMegatron, ReadsWhichLayersStayInBf16) {
  const Json plan =
      megatron(text_of("mixtral_8x7b.args") + " --first-last-layers-bf16 --num-layers-at-end-in-bf16 4")
          .scenario["plan"];
  EXPECT_EQ(plan["bf16_first_layers"], 1) << "Megatron-LM's own";
  EXPECT_EQ(plan["bf16_last_layers"], 4);
}

TEST(ImportMegatron, ReadsWhatDispatchesRows) {
  const auto plan = [](const std::string& flags) {
    return megatron(text_of("mixtral_8x7b.args") + flags).scenario["plan"];
  };
  EXPECT_FALSE(plan("").contains("moe_dispatcher"));
  EXPECT_EQ(plan(" --moe-token-dispatcher-type flex")["moe_dispatcher"], "deepep") << "its default";
  const std::string hybrid = " --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep";
  EXPECT_EQ(plan(hybrid)["moe_dispatcher"], "hybridep");
  EXPECT_EQ(plan(hybrid + " --moe-hybridep-num-sms 32")["moe_dispatcher_sms"], 32);
  EXPECT_EQ(plan(hybrid + " --moe-flex-dispatcher-num-sms 16")["moe_dispatcher_sms"], 16);
  EXPECT_FALSE(plan(" --moe-flex-dispatcher-backend hybridep").contains("moe_dispatcher")) << "not flex";
  EXPECT_THAT(megatron(text_of("mixtral_8x7b.args") +
                       " --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend ncclep")
                  .notes,
              Contains(HasSubstr("ncclep is modelled as alltoall")));
}

TEST(ImportMegatron, ReadsAMixtureWithChunksGivenByTheirLayers) {
  const Imported found = megatron(text_of("mixtral_8x7b.args"));
  EXPECT_EQ(found.scenario["plan"]["fused_permute"], false);
  EXPECT_EQ(
      megatron(text_of("mixtral_8x7b.args") + " --moe-permute-fusion").scenario["plan"]["fused_permute"],
      true);
  EXPECT_EQ(found.scenario["plan"]["fused_router"], false);
  EXPECT_EQ(megatron(text_of("mixtral_8x7b.args") + " --moe-router-fusion").scenario["plan"]["fused_router"],
            true);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["ep"], 8);
  EXPECT_EQ(plan["pp"], 4);
  EXPECT_EQ(plan["vpp"], 1);
  EXPECT_EQ(plan["zero"], 1);
  EXPECT_EQ(plan["sequence_parallel"], true);
  EXPECT_EQ(found.model["num_experts"], 8);
  EXPECT_EQ(found.model["num_key_value_heads"], 8);
  EXPECT_EQ(found.model["moe_intermediate_size"], 14336);
  EXPECT_EQ(found.model["vocab_size"], 32000);
}

// core/transformer/transformer_config.py: older releases have two switches and the scopes "full" and
// "full_iteration". Later ones have an implementation and its modules.
TEST(ImportMegatron, ReadsWhatCudaGraphsHold) {
  const auto plan = [](const std::string& flags) { return megatron(kShape + flags).scenario["plan"]; };
  EXPECT_FALSE(plan("").contains("cuda_graph"));
  EXPECT_FALSE(plan("--cuda-graph-impl none --cuda-graph-modules attn").contains("cuda_graph"));
  const Json whole = plan("--cuda-graph-impl full_iteration");
  EXPECT_EQ(whole["cuda_graph"], true);
  EXPECT_FALSE(whole.contains("cuda_graph_modules"));
  EXPECT_EQ(plan("--cuda-graph-impl local --cuda-graph-scope full_iteration"), whole);
  const Json parts = plan("--cuda-graph-impl transformer_engine --cuda-graph-scope attn moe_router");
  EXPECT_EQ(parts["cuda_graph_modules"], "attn,moe_router");
  EXPECT_EQ(plan("--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router"), parts);
  EXPECT_EQ(plan("--enable-cuda-graph")["cuda_graph_modules"], "attn,mlp");
  EXPECT_EQ(plan("--external-cuda-graph --cuda-graph-scope full")["cuda_graph_modules"], "attn,mlp");
  EXPECT_EQ(plan("--enable-cuda-graph --num-experts 8")["cuda_graph_modules"], "attn,moe");
}

TEST(ImportMegatron, TakesOldAndNewSpellings) {
  const auto plan = [](const std::string& flags) { return megatron(kShape + flags).scenario["plan"]; };
  EXPECT_EQ(plan("--use-custom-fsdp")["zero"], 0) << "the default of its releases is no_shard";
  EXPECT_EQ(plan("--use-megatron-fsdp")["zero"], 3);
  EXPECT_EQ(plan("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads")["zero"], 2);
  EXPECT_EQ(plan("--recompute-activations")["recompute"], "selective");
  EXPECT_EQ(plan("--activations-checkpoint-method uniform")["recompute"], "full");
  EXPECT_EQ(plan("--recompute-granularity selective --recompute-modules core_attn mlp")["recompute_modules"],
            "core_attn,mlp");
  EXPECT_EQ(plan("--num-virtual-stages-per-pipeline-rank 2 --microbatch-group-size-per-vp-stage 4")
                ["microbatch_group"],
            4);
  EXPECT_FALSE(plan("--microbatch-group-size-per-vp-stage 4").contains("microbatch_group")) << "no chunks";
  EXPECT_EQ(plan("--use-tp-pp-dp-mapping")["order"], "tp-cp-ep-pp-dp");
  EXPECT_EQ(plan("--pipeline-model-parallel-layout \"Et*2|(t*3|)*6,t*2L\"")["layout"], "Et*2|(t*3|)*6,t*2L");
  EXPECT_EQ(plan("--num-layers-per-virtual-pipeline-stage 1 --pipeline-model-parallel-size 2")["vpp"], 2);
  EXPECT_EQ(plan("--bf16 --fp8-format hybrid")["precision"], "fp8");
  EXPECT_EQ(plan("--bf16 --fp4-format e2m1 --fp4-recipe nvfp4")["precision"], "fp4");
  EXPECT_EQ(plan("--bf16 --fp4-format e2m1")["precision"], "fp4");
  EXPECT_FALSE(plan("--fp8-format hybrid --fp8-recipe delayed").contains("fp8_scaling"));
  EXPECT_EQ(plan("--fp8-format hybrid --fp8-recipe tensorwise")["fp8_scaling"], "current");
  const Json blocks = plan("--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather");
  EXPECT_EQ(blocks["fp8_scaling"], "mx");
  EXPECT_EQ(blocks["recipe"], "fp8-weights");
  EXPECT_EQ(plan("")["precision"], "fp32");
}

TEST(ImportMegatron, UnknownFlagsAndValuesAreNamedWithTheirLine) {
  EXPECT_THAT(megatron(kShape + "--vocab-size 512\n--tensor-model-paralel-size 8").notes,
              Contains(AllOf(HasSubstr("1 option is unknown"), HasSubstr("line 2"),
                             HasSubstr("near --tensor-model-parallel-size"))));
  EXPECT_THAT(refusal([] { megatron(kShape + "\n\n--micro-batch-size many"); }), HasSubstr("line 3"));
  EXPECT_THAT(refusal([] { megatron(kShape + "--micro-batch-size $MBS"); }),
              HasSubstr("that is set in the text"));
  EXPECT_THAT(megatron("--num-layers 4").notes,
              Contains(AllOf(HasSubstr("has no --hidden-size"), HasSubstr("pass --model"))));
  EXPECT_THAT(megatron(kShape + "--fp4-format e2m1 --fp4-recipe custom").notes,
              Contains(AllOf(HasSubstr("custom"), HasSubstr("nvfp4"))));
  EXPECT_THAT(refusal([] { megatron("nothing here"); }), HasSubstr("holds no options"));
  EXPECT_THAT(refusal([] { megatron("train.py --epochs 3"); }), HasSubstr("holds no option of Megatron-LM"));
  EXPECT_THAT(megatron(kShape + "--tokenizer-type HuggingFaceTokenizer").notes,
              Contains(AllOf(HasSubstr("128256 words are assumed"), HasSubstr("--vocab-size"))));
  EXPECT_EQ(megatron(kShape + "--tokenizer-type HuggingFaceTokenizer --tokenizer-model x/Llama-2-7b")
                .model["vocab_size"],
            32000);
  ImportRequest request;
  request.ignored = {"--mine"};
  EXPECT_THAT(import_megatron(kShape + "--mine 1", "train.sh", request).notes,
              Not(Contains(HasSubstr("unknown"))));
}

// Megatron-LM's and torchtitan's own default is 1, DeepSpeed's 0.
TEST(Import, RefusesBucketsThatNoMachineHolds) {
  const Json config = {{"train_batch_size", 8}, {"zero_optimization", {{"reduce_bucket_size", 1e308}}}};
  EXPECT_THAT(refusal([&] { import_deepspeed(JsonReader(config, "ds.json"), 8); }),
              AllOf(HasSubstr("/zero_optimization/reduce_bucket_size"), HasSubstr("to 1e+18")));
}

TEST(ImportMegatron, DividesStateAmongFewerReplicasThanAll) {
  const std::string flags = kShape +
                            "--tensor-model-parallel-size 2 --use-distributed-optimizer "
                            "--num-distributed-optimizer-instances ";
  const std::string launch = "torchrun --nproc-per-node 8 --nnodes 2 train.py ";
  EXPECT_EQ(megatron(launch + flags + "4").scenario["plan"]["zero_shard"], 2);
  const Imported uncounted = megatron(flags + "4");
  EXPECT_FALSE(uncounted.scenario["plan"].contains("zero_shard"));
  EXPECT_THAT(uncounted.notes, Contains(HasSubstr("--zero-shard")));
  EXPECT_THAT(refusal([&] { megatron(launch + flags + "3"); }),
              AllOf(HasSubstr("must divide the 8 replicas"), HasSubstr("nearest legal: 2")));
}

Json experts_of(const std::string& flags, std::vector<std::string>* notes = nullptr) {
  const Imported found = import_megatron(
      "--num-layers 6 --hidden-size 64 --num-attention-heads 4 --max-position-embeddings 64 --seq-length 64 "
      "--vocab-size 512 --num-experts 8 --swiglu --normalization RMSNorm --position-embedding-type rope "
      "--hidden-dropout 0 --attention-dropout 0 " +
          flags,
      "moe.sh");
  if (notes) *notes = found.notes;
  return found.model;
}

TEST(ImportMegatron, ReadsWhichLayersHaveExperts) {
  const std::string qwen = "--qk-layernorm --moe-layer-freq ",
                    deepseek = "--multi-latent-attention --moe-layer-freq ";
  EXPECT_EQ(experts_of(deepseek + "([0]*2+[1]*4)")["moe_layer_freq"], "001111");
  EXPECT_EQ(experts_of(qwen + "[0,1]*3")["moe_layer_freq"], "010101");
  EXPECT_EQ(experts_of(qwen + "2")["moe_layer_freq"], "101010") << "arguments.py, moe_freq_type";
  EXPECT_FALSE(experts_of(qwen + "1").contains("moe_layer_freq"));
  std::vector<std::string> notes;
  for (const char* other : {"[0]*6", "[0,1", "[1]*5", "[2]*6", "[1]*99999999999999999999", "0"}) {
    experts_of(qwen + other, &notes);
    EXPECT_THAT(notes, Contains(HasSubstr("--moe-layer-freq"))) << other;
  }
}

TEST(ImportMegatron, ReadsWindowsOfAttention) {
  const auto model = [](const std::string& flags) { return megatron(kShape + kOfLlama + flags); };
  const Json mistral = model("--window-size 127,0").model;
  EXPECT_EQ(mistral["sliding_window"], 128);
  EXPECT_EQ(model("--window-size (127,0)").model, mistral);
  EXPECT_EQ(model("--window-size 127,0 --window-attn-skip-freq [1,1,0,1]").model["window_layers"], "1101");
  for (const char* other : {"--window-size 127,1", "--window-size -1,-1", "--window-size 127"})
    EXPECT_THAT(model(other).notes, Contains(HasSubstr("--window-size"))) << other;
  EXPECT_EQ(experts_of("--disable-bias-linear --window-size 7,0")["sliding_window"], 8);
}

TEST(ImportMegatron, ReadsBucketsByWhatTheyHold) {
  const auto bucket = [](const std::string& flags) {
    return import_megatron(
               "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
               "--max-position-embeddings 64 " +
                   flags,
               "train.sh")
        .scenario["plan"]["bucket"];
  };
  EXPECT_EQ(bucket("--ddp-bucket-size 1000"), "4000B");
  EXPECT_EQ(bucket("--ddp-bucket-size 1000 --grad-reduce-in-bf16"), "2000B");
  EXPECT_THAT(refusal([&] { bucket("--ddp-bucket-size 0"); }), HasSubstr("--ddp-bucket-size"));
}

// Every name that the reader requests is in the table. It is read or unmodelled, and unmodelled ones state
// their approximation.
TEST(ImportMegatron, TheTableSaysWhatEachOptionMeans) {
  EXPECT_GT(megatron_options().size(), 1000U);
  for (const MegatronOption& option : megatron_options()) {
    EXPECT_EQ(option.role == OptionRole::unmodelled, !option.effect.empty()) << option.name();
    EXPECT_EQ(option.role == OptionRole::field, !option.pointer.empty()) << option.name();
  }
  EXPECT_EQ(find_megatron_option("--tensor_model_parallel_size")->pointer, "/plan/tp");
  EXPECT_EQ(find_megatron_option("--disable-bias-linear")->arguments.front(), "add_bias_linear");
  EXPECT_TRUE(find_megatron_option("--disable-bias-linear")->negates);
  EXPECT_EQ(find_megatron_option("--no-such-option"), nullptr);
}

TEST(ImportMegatron, ClassifiesEachOption) {
  const Imported found =
      megatron(kShape + "--vocab-size 512 --lr 1e-4 --optimizer muon --use-sharp --my-own 3");
  const auto fate = [&](const std::string& name) {
    for (const ImportedOption& option : found.options)
      if (option.name == name) return std::string(to_string(option.fate));
    return std::string("absent");
  };
  EXPECT_EQ(fate("--num-layers"), "used");
  EXPECT_EQ(fate("--lr"), "free");
  EXPECT_EQ(fate("--optimizer"), "approximated");
  EXPECT_EQ(fate("--use-sharp"), "ignored");
  EXPECT_EQ(fate("--my-own"), "unknown");
}

// The user hands in words like a launcher's variables and positional arguments.
TEST(ImportMegatron, TakesWordsThatTheUserHandsIn) {
  ImportRequest request;
  request.shell.variables = {{"SIZE", "8B"}, {"TP", "2"}};
  request.shell.arguments = {"4", "16"};
  const Imported found = import_megatron(
      "TP=8\nif [ $SIZE = 8B ]; then L=32; elif [ $SIZE = 70B ]; then L=80; fi\n"
      "train.py --num-layers $L --hidden-size 64 --num-attention-heads 4 --max-position-embeddings 64 "
      "--vocab-size 512 --tensor-model-parallel-size $TP --pipeline-model-parallel-size $1 "
      "--global-batch-size ${2:-8} --micro-batch-size ${3:-1}",
      "train.sh", request);
  EXPECT_EQ(found.model["num_hidden_layers"], 32);
  EXPECT_EQ(found.scenario["plan"]["tp"], 2);
  EXPECT_EQ(found.scenario["plan"]["pp"], 4);
  EXPECT_EQ(found.scenario["plan"]["global_batch"], 16);
  EXPECT_EQ(found.scenario["plan"]["micro_batch"], 1);
  EXPECT_THAT(found.notes, Contains(HasSubstr("TP=2 is handed in, in place of \"8\" in line 1")));
}

TEST(ImportMegatron, SaysWhichWordsDecideABranch) {
  EXPECT_THAT(
      refusal([] {
        megatron("if [ $SIZE = 8B ]; then L=32; else L=80; fi\ntrain.py --hidden-size 64 --num-layers $L");
      }),
      HasSubstr("rehearse import train.sh SIZE=VALUE"));
}

TEST(ImportMegatron, NamesEachFlagOnce) {
  std::vector<std::string> names = megatron_option_names();
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << *std::ranges::adjacent_find(names);
}

}  // namespace
}  // namespace rehearse
