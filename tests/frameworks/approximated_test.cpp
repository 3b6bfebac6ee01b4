// Options that a scenario cannot express: each is refused, or reported with its approximation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/imported.h"
#include "frameworks/optimizer_note.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json plan_of(const std::string& flags) {
  return megatron(kShape + flags).scenario["plan"];
}

// --- Megatron-LM ---

ImportRequest over(const std::string& pointer, const std::string& value) {
  ImportRequest request;
  request.over[pointer] = value;
  return request;
}

TEST(ImportMegatron, RefusesFlagsOfBranchesThatTheTextDoesNotDecide) {
  const std::string script =
      "if [ $AC = full ]; then O=\"--recompute-granularity full\"; fi\npretrain.py " + kShape + "$O";
  const auto read = [&](const std::vector<std::string>& ignored, const SaidOverFile& over) {
    ImportRequest request;
    request.ignored = ignored;
    request.over = over;
    return refusal([&] { import_megatron(script, "train.sh", request); });
  };
  EXPECT_THAT(read({}, {}),
              AllOf(HasSubstr("line 1: --recompute-granularity"), HasSubstr("if [ $AC = full ]"),
                    HasSubstr("--ignore recompute-granularity")));
  EXPECT_EQ(read({"--recompute-granularity"}, {}), "no error");
  EXPECT_EQ(read({}, {{"/plan/recompute", "none"}}), "no error") << "the command line decides";
  const std::string costless = "if [ -f $CKPT ]; then O=\"--load $CKPT\"; fi\npretrain.py " + kShape + "$O";
  EXPECT_EQ(refusal([&] { import_megatron(costless, "train.sh"); }), "no error");
  EXPECT_FALSE(megatron("AC=none\n" + script).scenario["plan"].contains("recompute"));
}

TEST(ImportMegatron, TakesTheCommandLineOverTheText) {
  const std::string flags = kShape + "--vocab-size 800 --tensor-model-parallel-size ${1} ";
  EXPECT_THAT(refusal([&] { megatron(flags); }),
              AllOf(HasSubstr("--tensor-model-parallel-size"), HasSubstr("that is set in the text")));
  const Imported found = import_megatron(flags, "train.sh", over("/plan/tp", "4"));
  EXPECT_EQ(found.scenario["plan"]["tp"], 4);
  EXPECT_EQ(found.model["vocab_size"], 1024) << "padded to 128 for each of four ranks";
  const std::string tokenizer = kShape + "--tokenizer-type HuggingFaceTokenizer";
  EXPECT_TRUE(import_megatron(tokenizer, "train.sh", over("/model", "llama3-8b")).model.is_null());
}

TEST(ImportMegatron, ChecksTheValuesOfClosedLists) {
  const auto read = [](const std::string& flags) { return refusal([&] { megatron(kShape + flags); }); };
  EXPECT_THAT(read("--num-experts 8 --moe-token-dispatcher-type banana"),
              AllOf(HasSubstr("line 1: --moe-token-dispatcher-type"), HasSubstr("allgather, alltoall"),
                    HasSubstr("found \"banana\"")));
  for (const char* flag :
       {"--normalization LayerNrom", "--position-embedding-type sinusoidal", "--attention-backend flsh",
        "--optimizer adm", "--cp-comm-type ring", "--recompute-granularity fll", "--fp8-format e5m2",
        "--cuda-graph-impl always", "--recompute-modules core_atn", "--lr-decay-style cosin"})
    EXPECT_THAT(read(flag), HasSubstr("must be one of")) << flag;
  EXPECT_THAT(read("--swiglu 3"), HasSubstr("takes no value"));
  EXPECT_THAT(read("--micro-batch-size 1 2"), HasSubstr("takes one value"));
  EXPECT_EQ(read("--moe-router-load-balancing-type aux_loss seq_aux_loss"), "no error");
}

TEST(ImportMegatron, TakesValuesOfForksWhereTheyCostNothing) {
  const auto notes = [](const std::string& flags) { return megatron(kShape + flags).notes; };
  EXPECT_THAT(notes("--distributed-backend flagcx"),
              Contains(AllOf(HasSubstr("flagcx"), HasSubstr("collectives of NCCL are counted"))));
  EXPECT_EQ(refusal([&] { notes("--tokenizer-type HFTokenizer"); }), "no error") << "Megatron-DeepSpeed";
  EXPECT_EQ(refusal([&] { notes("--tokenizer-type Llama3Tokenizer"); }), "no error") << "Primus";
  EXPECT_EQ(refusal([&] { notes("--tokenizer-type BailingTokenizer"); }), "no error") << "Ling";
}

TEST(ImportMegatron, ReadsOneHeadOfKeysAndTheCutOfStagesOfForks) {
  EXPECT_EQ(megatron(kShape + "--attention-head-type multiquery").model["num_key_value_heads"], 1);
  EXPECT_EQ(megatron(kShape + "--attention-head-type multihead").model["num_key_value_heads"], 4);
  const Json cut = megatron(kShape + "--pp-partition-method 'type:transformer|embedding'").scenario["plan"];
  EXPECT_EQ(cut["embedding_as_layer"], true);
  EXPECT_EQ(cut["loss_as_layer"], true);
  EXPECT_FALSE(megatron(kShape + "--pp-partition-method type:transformer")
                   .scenario["plan"]
                   .contains("embedding_as_layer"));
  EXPECT_THAT(megatron(kShape + "--pp-partition-method parameters").notes,
              Contains(HasSubstr("equal numbers of layers")));
}

TEST(ImportMegatron, NamesWhatItApproximates) {
  const auto notes = [](const std::string& flags) { return megatron(kShape + flags).notes; };
  EXPECT_THAT(notes("--optimizer muon"),
              Contains(AllOf(HasSubstr("--optimizer is muon"), HasSubstr("4 bytes per parameter"))));
  EXPECT_THAT(notes("--optimizer adam"), IsEmpty());
  const std::string experts =
      "--num-experts 8 --moe-grouped-gemm --disable-bias-linear --expert-model-parallel-size 8 ";
  EXPECT_THAT(notes(experts + "--moe-token-dispatcher-type allgather"), Contains(HasSubstr("all-to-all")));
  EXPECT_THAT(notes(experts), Contains(HasSubstr("allgather, Megatron-LM's default")));
  EXPECT_THAT(notes(experts + "--moe-token-dispatcher-type alltoall"), IsEmpty());
  EXPECT_THAT(notes("--fine-grained-activation-offloading --offload-modules core_attn"),
              Each(HasSubstr("are ignored: activations are counted on the GPU")));
  EXPECT_THAT(notes("--moe-router-force-load-balancing --eod-mask-loss --train-sync-interval 1"), IsEmpty());
  EXPECT_THAT(notes("--position-embedding-type mrope --disable-bias-linear"),
              Contains(HasSubstr("modelled as rope")));
  EXPECT_THAT(notes("--cp-comm-type a2a p2p"), Contains(HasSubstr("differs between layers")));
  EXPECT_THAT(notes("--main-params-dtype fp32"), IsEmpty()) << "which is what is counted";
}

TEST(ImportMegatron, KeepsNarrowGradientsWhereMegatronDoes) {
  EXPECT_EQ(plan_of("--fp16")["recipe"], "sagemaker");
  EXPECT_EQ(plan_of("--fp16")["grad_reduce"], "fp16");
  EXPECT_FALSE(plan_of("--fp16 --accumulate-allreduce-grads-in-fp32").contains("recipe"));
  EXPECT_FALSE(plan_of("--bf16").contains("recipe"));
  EXPECT_EQ(plan_of("--bf16 --grad-reduce-in-bf16")["recipe"], "sagemaker");
}

TEST(ImportMegatron, ReadsMegatronFsdpAsDocumented) {
  const std::string fsdp = "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params ";
  const Json ahead =
      plan_of(fsdp + "--overlap-grad-reduce --overlap-param-gather --ckpt-format fsdp_dtensor");
  EXPECT_EQ(ahead["zero"], 3);
  EXPECT_EQ(ahead["overlap_param_gather"], false) << "parameters of each layer, not of the step";
  EXPECT_FALSE(ahead.contains("prefetch"));
  const Json alone = plan_of(fsdp);
  EXPECT_FALSE(alone.contains("prefetch")) << "megatron_fsdp.py turns both overlaps on";
  EXPECT_EQ(alone["overlap_grad_reduce"], true);
  EXPECT_EQ(plan_of("--use-torch-fsdp2")["overlap_grad_reduce"], true);
  EXPECT_EQ(plan_of("--use-custom-fsdp --data-parallel-sharding-strategy optim_grads_params")["prefetch"], 0);
  EXPECT_FALSE(plan_of("--data-parallel-sharding-strategy optim_grads").contains("zero")) << "no FSDP";
}

TEST(ImportMegatron, SaysEachPartOfANetwork) {
  const std::string experts =
      kShape + "--num-experts 8 --moe-router-topk 2 --disable-bias-linear --vocab-size 512 ";
  const Json gelu = megatron(experts).model;
  EXPECT_EQ(gelu["model_type"], "megatron_gpt");
  EXPECT_EQ(gelu["activation"], "gelu");
  EXPECT_EQ(gelu["normalization"], "LayerNorm");
  EXPECT_EQ(gelu["position_embedding_type"], "learned_absolute");
  EXPECT_EQ(gelu["num_experts"], 8);
  const Json shared = megatron(experts + kOfLlama + "--moe-shared-expert-intermediate-size 64").model;
  EXPECT_EQ(shared["moe_shared_expert_intermediate_size"], 64);
  const auto part = [](const std::string& flags, const char* key) {
    return megatron(kShape + "--vocab-size 512 " + flags).model[key];
  };
  EXPECT_EQ(part("--disable-bias-linear --add-qkv-bias", "qkv_bias"), true);
  EXPECT_EQ(part("--disable-bias-linear --add-qkv-bias", "attention_out_bias"), false);
  EXPECT_EQ(part(kOfLlama, "mlp_bias"), true);
  EXPECT_EQ(part("", "hidden_dropout"), 0.1) << "Megatron-LM's default";
  EXPECT_EQ(part("--position-embedding-type alibi", "position_embedding_type"), "alibi");
  EXPECT_EQ(part("--group-query-attention --num-query-groups 2", "num_key_value_heads"), 2);
  EXPECT_EQ(part("--num-experts 8", "moe_linear_bias"), true);
  EXPECT_EQ(part("--multi-latent-attention --kv-lora-rank 64", "kv_lora_rank"), 64) << "without experts";
}

TEST(ImportMegatron, ReadsUnderscoresOfMsSwift) {
  const Imported found = megatron(
      "megatron sft --model Qwen/Qwen2.5-7B-Instruct --tensor_model_parallel_size 4 --micro_batch_size 1 "
      "--recompute_granularity full --max_length 8192 --sequence_parallel true --swiglu false");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["tp"], 4);
  EXPECT_EQ(plan["seq"], 8192);
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_EQ(plan["sequence_parallel"], true);
  EXPECT_EQ(plan["precision"], "bf16") << "its default";
  EXPECT_EQ(plan["zero"], 1);
  EXPECT_TRUE(found.model.is_null());
  EXPECT_THAT(found.notes, Contains(HasSubstr("has no model shape")));
  EXPECT_THAT(found.notes, Contains(HasSubstr("ms-swift")));
}

TEST(ImportMegatron, ReadsFlagsAsKeysOfYaml) {
  const Json plan =
      megatron(
          "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\nMODEL_ARGS:\n  --num-layers: 4 # four\n"
          "  --hidden-size: 256\n  --num-attention-heads: 4\n  --max-position-embeddings: 512\n"
          "  --sequence-parallel: true\n  --swiglu: false\n  --recompute-method: null\n"
          "  --recompute-granularity: selective\n  --recompute-modules: [core_attn, mlp]\n  --bf16: true\n")
          .scenario["plan"];
  EXPECT_EQ(plan["sequence_parallel"], true);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["recompute_modules"], "core_attn,mlp");
  EXPECT_FALSE(plan.contains("recompute_method"));
}

TEST(ImportMegatron, ReadsTheArgumentsOfALog) {
  const Imported found = megatron(
      "using world size: 16\n0: ------------------------ arguments ------------------------\n"
      "0:   attention_backend ............................... AttnBackend.auto\n"
      "0:   add_bias_linear ................................. False\n"
      "0:   async_tensor_model_parallel_allreduce ........... False\n"
      "0:   bf16 ............................................ True\n"
      "0:   fp8 ............................................. None\n"
      "0:   hidden_size ..................................... 256\n"
      "0:   max_position_embeddings ......................... 512\n"
      "0:   num_attention_heads ............................. 4\n"
      "0:   num_layers ...................................... 4\n"
      "0:   padded_vocab_size ............................... 512\n"
      "0:   sequence_parallel ............................... True\n"
      "0:   tensor_model_parallel_size ...................... 4\n"
      "0:   unheard_of ...................................... 3\n"
      "0:   use_distributed_optimizer ....................... True\n"
      "0:   world_size ...................................... 16\n"
      "0: -------------------- end of arguments ---------------------\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(plan["tp"], 4);
  EXPECT_EQ(plan["zero"], 1);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_FALSE(plan.contains("tp_backward_overlap")) << "sequence parallelism implies the argument";
  EXPECT_EQ(found.model["vocab_size"], 512);
  EXPECT_EQ(found.model["mlp_bias"], false);
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("1 option is unknown"), HasSubstr("unheard_of"))));
}

// --- DeepSpeed ---

Imported deepspeed(const std::string& keys, int gpus = 8) {
  return import_deepspeed(JsonReader(Json::parse("{\"bf16\": {\"enabled\": true}, " + keys + "}"), "ds.json"),
                          gpus);
}

TEST(ImportDeepSpeed, TakesReductionsThatDoNotOverlap) {
  for (const char* zero : {R"("zero_optimization": {"stage": 2})",
                           R"("zero_optimization": {"stage": 3, "overlap_comm": false})"}) {
    const Imported found = deepspeed(zero);
    EXPECT_EQ(found.scenario["plan"]["overlap_grad_reduce"], true) << zero;
    EXPECT_THAT(found.notes, Contains(HasSubstr("the step is predicted too fast"))) << zero;
  }
  EXPECT_THAT(deepspeed(R"("zero_optimization": {"stage": 2, "overlap_comm": true})").notes, IsEmpty());
  EXPECT_EQ(deepspeed(R"("zero_optimization": {"stage": 1})").scenario["plan"]["overlap_grad_reduce"], false);
}

TEST(ImportDeepSpeed, NamesWhatItApproximates) {
  EXPECT_THAT(deepspeed(R"("optimizer": {"type": "SGD"})").notes, Contains(HasSubstr("no second moment")));
  EXPECT_THAT(deepspeed(R"("optimizer": {"type": "AdamW"})").notes, IsEmpty());
  const Imported nvme = deepspeed(
      R"("zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/l"},
         "offload_param": {"device": "nvme"}})");
  EXPECT_THAT(nvme.notes,
              Contains(AllOf(HasSubstr("offload_optimizer"), HasSubstr("counted as host memory"))));
  EXPECT_THAT(nvme.notes, Contains(AllOf(HasSubstr("offload_param"), HasSubstr("counted on the GPU"))));
  EXPECT_THAT(deepspeed(R"("zero_optimization": {"stage": 3, "max_live_parameters": 1e9})").notes,
              Contains(HasSubstr("\"zero_optimization/max_live_parameters\" is ignored")));
  EXPECT_THAT(deepspeed(R"("optimizer": {"type": "MyOwn"})").notes, Contains(HasSubstr("not known")));
}

TEST(ImportDeepSpeed, ReadsRecomputeOfPipelinesAndTheTypeOfGradients) {
  const Json plan =
      deepspeed(R"("pipeline": {"stages": 4, "activation_checkpoint_interval": 2, "partition": "uniform"})")
          .scenario["plan"];
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_EQ(plan["recompute_num_layers"], 2);
  EXPECT_EQ(deepspeed(R"("data_types": {"grad_accum_dtype": "fp32"})").scenario["plan"]["recipe"],
            "megatron");
  EXPECT_FALSE(
      deepspeed(R"("data_types": {"grad_accum_dtype": "bf16"})").scenario["plan"].contains("recipe"));
  const auto read = [](const char* keys) { return refusal([&] { deepspeed(keys); }); };
  EXPECT_THAT(read(R"("data_types": {"grad_accum_dtype": "fp23"})"),
              HasSubstr("/data_types/grad_accum_dtype"));
  EXPECT_THAT(deepspeed(R"("pipeline": {"stges": 4})").notes,
              Contains(HasSubstr(
                  "\"pipeline/stges\" is unknown to DeepSpeed, and ignored; did you mean \"stages\"?")));
  EXPECT_THAT(read(R"("communication_data_type": "banana")"), HasSubstr("must be one of"));
  EXPECT_THAT(deepspeed(R"("fp16": {"enable": true})").notes,
              Contains(HasSubstr("\"fp16/enable\" is unknown")));
  EXPECT_THAT(read(R"("zero_optimization": {"offload_optimizer": {"device": "disk"}})"), HasSubstr("nvme"));
}

TEST(ImportDeepSpeed, ListsWhatTheCommandLineDecides) {
  const JsonReader config = JsonReader::of_text(
      R"({"train_batch_size": "auto", "gradient_accumulation_steps": "auto", "fp16": {"enabled": "true"},
          "zero_optimization": {"stage": 2, "offload_optimizer": false}})",
      "ds.json");
  const Imported found = import_deepspeed(config, 8, over("/plan/global_batch", "64").over);
  EXPECT_EQ(fate_of(found, "train_batch_size"), "ignored");
  EXPECT_EQ(fate_of(found, "gradient_accumulation_steps"), "ignored");
  EXPECT_EQ(found.scenario["plan"]["precision"], "fp16") << "a word, as pydantic reads it";
  EXPECT_FALSE(found.scenario["plan"].contains("offload"));
}

TEST(ImportDeepSpeed, KeepsAccumulationForTheCommandLine) {
  const std::string keys = R"("train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 16)";
  EXPECT_EQ(deepspeed(keys).accumulation, 16);
  EXPECT_EQ(
      deepspeed(R"("train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 16)").accumulation, 0);
}

TEST(ImportDeepSpeed, KeepsAccumulationBesideAMicrobatchOfTheCommandLine) {
  const Json config = {{"train_micro_batch_size_per_gpu", "auto"},
                       {"train_batch_size", "auto"},
                       {"gradient_accumulation_steps", 16}};
  const Imported found = import_deepspeed(JsonReader(config, "ds.json"), 8, {{"/plan/micro_batch", "2"}});
  EXPECT_EQ(found.scenario["plan"]["global_batch"], 2 * 16 * 8);
}

// --- torchtitan ---

Imported torchtitan(const std::string& text) {
  return import_torchtitan("[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + text, "train.toml", 8, 32);
}

TEST(ImportTorchtitan, RefusesKeysAndWordsThatNoReleaseHas) {
  const auto read = [](const char* text) { return refusal([&] { torchtitan(text); }); };
  EXPECT_THAT(
      read("[activation_checkpoint]\nmoed = \"full\"\n[compile]\nenabled = true\n"),
      AllOf(HasSubstr("/activation_checkpoint/moed"), HasSubstr("mode"), HasSubstr("/compile/enabled")))
      << "all of them at once";
  EXPECT_THAT(read("[optimiser]\nname = \"AdamW\"\n"),
              AllOf(HasSubstr("is not a section"), HasSubstr("optimizer")));
  EXPECT_THAT(read("[quantize.linear.float8]\nrecipe = \"rowwise\"\n"),
              HasSubstr("/quantize/linear/float8/recipe"));
  EXPECT_THAT(read("converters = [\"float9\"]\n"),
              AllOf(HasSubstr("/model/converters"), HasSubstr("float8")));
  EXPECT_THAT(read("[training]\ndtype = \"float16\"\n"), HasSubstr("must be one of"));
  EXPECT_THAT(read("[parallelism]\ncontext_parallel_rotate_method = \"ring\"\n"),
              HasSubstr("must be one of"));
}

// YerevaNN/YNNtitan has keys of its own.
TEST(ImportTorchtitan, NotesKeysOfForks) {
  const Imported found = torchtitan(
      "[training]\nlocal_batch_size = 2\ngradient_accumulation_steps = 3\ndata_processing_style = \"x\"\n"
      "[metrics]\nsave_aim_folder = \"aim\"\n");
  EXPECT_EQ(found.scenario["plan"]["global_batch"], 48);
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("2 keys are unknown to torchtitan"),
                                          HasSubstr("training.data_processing_style"),
                                          HasSubstr("metrics.save_aim_folder"))));
}

TEST(ImportTorchtitan, ReadsConvertersAndTheOptimizer) {
  const Json mx =
      torchtitan(
          "converters = [\"quantize.linear.mx\"]\n[quantize.linear.mx]\nrecipe_name = \"mxfp8_cublas\"\n")
          .scenario["plan"];
  EXPECT_EQ(mx["precision"], "fp8");
  EXPECT_EQ(mx["fp8_scaling"], "mx");
  EXPECT_THAT(torchtitan("converters = [\"quantize.grouped_mm.mx\"]\n").notes,
              Contains(HasSubstr("GEMMs of experts")));
  const Imported found = torchtitan(
      "[optimizer]\nname = \"Adafactor\"\nimplementation = \"foreach\"\n"
      "early_step_in_backward = true\n");
  EXPECT_THAT(found.notes, Contains(HasSubstr("\"optimizer/name\" is Adafactor")));
  EXPECT_THAT(found.notes, Contains(HasSubstr("early_step_in_backward")));
  EXPECT_EQ(found.scenario["plan"]["fused_adam"], false);
}

TEST(ImportTorchtitan, ReadsKeysOfEarlierReleases) {
  const Json plan = torchtitan(
                        "norm_type = \"rmsnorm\"\n[training]\nbatch_size = 3\ncompile = true\n"
                        "tensor_parallel_degree = 2\n[float8]\nenable_float8_linear = false\n")
                        .scenario["plan"];
  EXPECT_EQ(plan["micro_batch"], 3);
  EXPECT_EQ(plan["tp"], 2);
  EXPECT_EQ(plan["fused_rotary"], true) << "compiled";
}

TEST(OptimizerNote, IsEmptyForAdamAlone) {
  for (const char* adam : {"adam", "AdamW", "FusedAdam", "DeepSpeedCPUAdam"})
    EXPECT_EQ(optimizer_note("x", adam), "") << adam;
  for (const char* other : {"sgd", "dist_muon", "Lion", "Adafactor", "soap", "OneBitAdam", "own"})
    EXPECT_THAT(optimizer_note("x", other), AllOf(HasSubstr(other), HasSubstr("of Adam are counted")))
        << other;
}

}  // namespace
}  // namespace rehearse
