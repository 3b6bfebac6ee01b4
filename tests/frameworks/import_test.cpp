// Configurations of Megatron-LM, DeepSpeed and torchtitan as scenarios; data/README.md names the samples.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "frameworks/imported.h"
#include "frameworks/megatron_names.h"
#include "frameworks/script_flags.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string path(const std::string& name) {
  return std::string(SOURCE_DIR) + "/tests/frameworks/data/" + name;
}

std::string text_of(const std::string& name) {
  std::ifstream in(path(name));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

template <typename Import>
std::string refusal(Import&& import) {
  try {
    import();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

Imported megatron(const std::string& text) {
  return import_megatron(text, "train.sh", {});
}

const std::string kShape =
    "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --max-position-embeddings 512 ";

TEST(ScriptFlags, FollowsVariablesAndLeavesOutComments) {
  const auto flags = script_flags(
      "#!/bin/sh\nexport N=4\nM=${SLURM_NNODES:-\"2\"}\nARGS=(\n  --a $N --b=$((N * $M)) # --c 1\n  #--d\n)\n"
      "run ${ARGS[@]} --e $UNSET 'x y'\n",
      "train.sh");
  ASSERT_EQ(flags.size(), 3u);
  EXPECT_EQ(flags[0].name, "--a");
  EXPECT_THAT(flags[0].values, ElementsAre("4"));
  EXPECT_THAT(flags[1].values, ElementsAre("8"));
  EXPECT_EQ(flags[1].line, 5);
  EXPECT_THAT(flags[2].values, ElementsAre("$UNSET", "x", "y"));
}

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
  EXPECT_EQ(found.model["model_type"], "gpt2");
  EXPECT_EQ(found.model["n_layer"], 96);
  EXPECT_EQ(found.model["n_embd"], 12288);
  EXPECT_EQ(found.model["vocab_size"], 51200) << "50257 padded to a multiple of 128 x 8";
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("--rampup-batch-size")));
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
  EXPECT_EQ(found.model["model_type"], "mixtral");
  EXPECT_EQ(found.model["num_local_experts"], 8);
  EXPECT_EQ(found.model["num_key_value_heads"], 8);
  EXPECT_EQ(found.model["intermediate_size"], 14336);
  EXPECT_EQ(found.model["vocab_size"], 32000);
}

// core/transformer/transformer_config.py: from two switches, scopes of "full" and "full_iteration", to an
// implementation and its modules.
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
  EXPECT_EQ(plan("--use-custom-fsdp")["zero"], 3);
  EXPECT_EQ(plan("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads")["zero"], 2);
  EXPECT_EQ(plan("--recompute-activations")["recompute"], "selective");
  EXPECT_EQ(plan("--activations-checkpoint-method uniform")["recompute"], "full");
  EXPECT_EQ(plan("--recompute-granularity selective --recompute-modules core_attn mlp")["recompute_modules"],
            "core_attn,mlp");
  EXPECT_EQ(plan("--microbatch-group-size-per-vp-stage 4")["microbatch_group"], 4);
  EXPECT_EQ(plan("--use-tp-pp-dp-mapping")["order"], "tp-cp-ep-pp-dp");
  EXPECT_EQ(plan("--pipeline-model-parallel-layout \"Et*2|(t*3|)*6,t*2L\"")["layout"], "Et*2|(t*3|)*6,t*2L");
  EXPECT_EQ(plan("--num-layers-per-virtual-pipeline-stage 1 --pipeline-model-parallel-size 2")["vpp"], 2);
  EXPECT_EQ(plan("--bf16 --fp8-format hybrid")["precision"], "fp8");
  EXPECT_FALSE(plan("--fp8-format hybrid --fp8-recipe delayed").contains("fp8_scaling"));
  EXPECT_EQ(plan("--fp8-format hybrid --fp8-recipe tensorwise")["fp8_scaling"], "current");
  const Json blocks = plan("--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather");
  EXPECT_EQ(blocks["fp8_scaling"], "mx");
  EXPECT_EQ(blocks["recipe"], "fp8-weights");
  EXPECT_EQ(plan("")["precision"], "fp32");
}

TEST(ImportMegatron, UnknownFlagsAndValuesAreNamedWithTheirLine) {
  EXPECT_THAT(refusal([] { megatron(kShape + "\n--tensor-model-paralel-size 8"); }),
              AllOf(HasSubstr("train.sh: line 2"), HasSubstr("--tensor-model-parallel-size")));
  EXPECT_THAT(refusal([] { megatron(kShape + "\n\n--micro-batch-size many"); }), HasSubstr("line 3"));
  EXPECT_THAT(refusal([] { megatron(kShape + "--micro-batch-size $MBS"); }),
              HasSubstr("that the text itself sets"));
  EXPECT_THAT(refusal([] { megatron("--num-layers 4"); }), HasSubstr("--hidden-size"));
  EXPECT_THAT(refusal([] { megatron(kShape + "--fp8-format hybrid --fp8-recipe blockwise"); }),
              AllOf(HasSubstr("blockwise"), HasSubstr("delayed, tensorwise or mxfp8")));
  EXPECT_THAT(refusal([] { megatron("nothing here"); }), HasSubstr("holds no flags"));
  EXPECT_THAT(refusal([] { megatron(kShape + "--tokenizer-type HuggingFaceTokenizer"); }),
              HasSubstr("--vocab-size"));
  EXPECT_THAT(refusal([] { import_megatron(kShape + "--mine 1", "train.sh", {"--mine"}); }),
              HasSubstr("no error"));
}

// Megatron-LM's and torchtitan's own default is 1, DeepSpeed's 0.
TEST(Import, ReadsWhatGradientsAreClippedTo) {
  const auto of_script = [](const std::string& flags) {
    return megatron(kShape + flags).scenario["plan"]["clip_grad"];
  };
  EXPECT_EQ(of_script(""), 1.0);
  EXPECT_EQ(of_script("--clip-grad 0.25"), 0.25);
  EXPECT_EQ(of_script("--clip-grad 0"), 0.0);
  const auto of_config = [](const char* text) {
    return import_deepspeed(JsonReader(Json::parse(text), "ds.json"), 8)
        .scenario["plan"]
        .value("clip_grad", 0.0);
  };
  EXPECT_EQ(of_config(R"({"train_batch_size": 8})"), 0);
  EXPECT_EQ(of_config(R"({"train_batch_size": 8, "gradient_clipping": 0.5})"), 0.5);
  EXPECT_EQ(of_config(R"({"train_batch_size": 8, "gradient_clipping": "auto"})"), 0);
  const auto of_toml = [](const std::string& key) {
    return import_torchtitan(
               "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 4096\n" + key,
               "train.toml", 8)
        .scenario["plan"]["clip_grad"];
  };
  EXPECT_EQ(of_toml(""), 1.0);
  EXPECT_EQ(of_toml("max_norm = 2.5\n"), 2.5);
}

// What no scenario can say is refused where it stands.
TEST(Import, RefusesToClipGradientsToMoreThanAScenarioCan) {
  EXPECT_EQ(megatron(kShape + "--clip-grad -1").scenario["plan"]["clip_grad"], 0.0)
      << "as Megatron-LM takes it";
  EXPECT_THAT(refusal([] { megatron(kShape + "--clip-grad 1e10"); }),
              AllOf(HasSubstr("train.sh: line 1: --clip-grad"), HasSubstr("1e+09")));
  const Json config = {{"train_batch_size", 8}, {"gradient_clipping", 1e10}};
  EXPECT_THAT(refusal([&] { import_deepspeed(JsonReader(config, "ds.json"), 8); }),
              AllOf(HasSubstr("/gradient_clipping"), HasSubstr("to 1e+09")));
  const auto of_toml = [](const std::string& norm) {
    const std::string model = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 4096\n";
    return refusal([&] { import_torchtitan(model + "max_norm = " + norm, "train.toml", 8); });
  };
  EXPECT_THAT(of_toml("1e10"), AllOf(HasSubstr("/training/max_norm"), HasSubstr("to 1e+09")));
  EXPECT_THAT(of_toml("inf"), AllOf(HasSubstr("/training/max_norm"), HasSubstr("found inf")));
}

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

TEST(ImportMegatron, NamesEachFlagOnce) {
  std::vector<std::string> names = known_megatron_flags();
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << *std::ranges::adjacent_find(names);
}

TEST(ImportDeepSpeed, ReadsTheSampleOfZero3WithOffload) {
  const Imported found = import_deepspeed(JsonReader::open(path("ds_zero3.json")), 64);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_EQ(plan["precision"], "fp16");
  EXPECT_EQ(plan["offload"], "optimizer");
  EXPECT_EQ(plan["overlap_grad_reduce"], true);
  EXPECT_FALSE(plan.contains("bucket")) << "0 elements are no bucket";
  EXPECT_THAT(found.notes, Contains(HasSubstr("offload_param")));
}

TEST(ImportDeepSpeed, LeavesAutoToDefaultsAndMultipliesTheBatch) {
  const Imported found = import_deepspeed(JsonReader::open(path("ds_zero3_auto.json")), 16);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["global_batch"], 2 * 4 * 16);
  EXPECT_FALSE(plan.contains("precision"));
  EXPECT_FALSE(plan.contains("bucket"));
  EXPECT_THAT(found.notes, Contains(HasSubstr("\"train_batch_size\" is auto")));
}

TEST(ImportDeepSpeed, RefusesUnknownKeysAndBatchesThatDisagree) {
  const auto read = [](const char* text, int gpus) {
    return refusal([&] { import_deepspeed(JsonReader(Json::parse(text), "ds.json"), gpus); });
  };
  EXPECT_THAT(read(R"({"zero_optimisation": {}})", 8), HasSubstr("zero_optimization"));
  EXPECT_THAT(read(R"({"zero_optimization": {"stge": 3}})", 8), HasSubstr("/zero_optimization/stge"));
  EXPECT_THAT(read(R"({"zero_optimization": {"stage": 4}})", 8), HasSubstr("from 0 to 3"));
  EXPECT_THAT(read(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2,
                       "gradient_accumulation_steps": 2})",
                   8),
              AllOf(HasSubstr("/train_batch_size"), HasSubstr("32")));
}

TEST(ImportTorchtitan, ReadsTheSampleOfLlama3) {
  const Imported found = import_torchtitan(text_of("llama3_70b.toml"), "llama3_70b.toml", 256);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["model"], "llama3-70b");
  EXPECT_EQ(plan["tp"], 8);
  EXPECT_EQ(plan["dp"], 32);
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_EQ(plan["micro_batch"], 8);
  EXPECT_EQ(plan["global_batch"], 8 * 32);
  EXPECT_EQ(plan["seq"], 8192);
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_EQ(plan["fused_rotary"], false);  // it is not compiled
  EXPECT_EQ(plan["fused_activation"], false);
  EXPECT_EQ(plan["fused_cross_entropy"], false);
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(ImportTorchtitan, ReadsPipelinesAndHybridSharding) {
  const Imported found = import_torchtitan(R"([model]
name = "llama3"
flavor = "405B"
converters = ["float8"]
[training]
local_batch_size = 16
global_batch_size = 128
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "ZBVZeroBubble"
pipeline_parallel_microbatch_size = 2
fsdp_reshard_after_forward = "never"
[quantize.linear.float8]
recipe_name = "rowwise"
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
)",
                                           "pp.toml", 0);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["schedule"], "zb-v");
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["global_batch"], 128);
  EXPECT_EQ(plan["dp"], 8);
  EXPECT_EQ(plan["zero_shard"], 4);
  EXPECT_EQ(plan["reshard_after_forward"], false);
  EXPECT_EQ(plan["precision"], "fp8");
  EXPECT_EQ(plan["fp8_scaling"], "row");
  EXPECT_EQ(plan["recompute"], "op");
}

TEST(ImportTorchtitan, ReadsWhatDispatchesRows) {
  const auto plan = [](const std::string& text) {
    return import_torchtitan("[parallelism]\n" + text, "experts.toml", 8).scenario["plan"];
  };
  EXPECT_EQ(plan("expert_parallel_degree = 8\nexpert_parallel_comm_backend = \"deepep\"\n")["moe_dispatcher"],
            "deepep");
  EXPECT_FALSE(plan("expert_parallel_comm_backend = \"deepep\"\n").contains("moe_dispatcher"));
  EXPECT_FALSE(plan("expert_parallel_degree = 8\nexpert_parallel_comm_backend = \"standard\"\n")
                   .contains("moe_dispatcher"));
}

TEST(ImportTorchtitan, ItsAllToAllIsARing) {
  const auto exchange = [](const std::string& method) {
    return import_torchtitan(
               "[parallelism]\ncontext_parallel_degree = 4\ncontext_parallel_rotate_method = \"" + method +
                   "\"\n",
               "cp.toml", 8)
        .scenario["plan"]["cp_comm_type"];
  };
  EXPECT_EQ(exchange("alltoall"), "p2p");
  EXPECT_EQ(exchange("allgather"), "allgather");
}

// torchtitan looks at it with tensor parallelism alone, and then needs the model compiled.
TEST(ImportTorchtitan, AsynchronousTensorParallelismIsCompiled) {
  const auto text = [](int tp, bool compiled) {
    return fmt::format(
        "[parallelism]\ntensor_parallel_degree = {}\nenable_async_tensor_parallel = true\n"
        "[compile]\nenable = {}\n",
        tp, compiled);
  };
  EXPECT_EQ(import_torchtitan(text(8, true), "async.toml", 8).scenario["plan"]["tp_comm_overlap"], true);
  EXPECT_FALSE(
      import_torchtitan(text(1, false), "async.toml", 8).scenario["plan"].contains("tp_comm_overlap"));
  EXPECT_THAT(refusal([&] { import_torchtitan(text(8, false), "async.toml", 8); }),
              AllOf(HasSubstr("/parallelism/enable_async_tensor_parallel"), HasSubstr("compile.enable")));
}

TEST(ImportTorchtitan, RefusesWhatItDoesNotKnow) {
  const auto read = [](const char* text) { return refusal([&] { import_torchtitan(text, "bad.toml", 8); }); };
  EXPECT_THAT(read("[parallelism\n"), AllOf(HasSubstr("bad.toml: line"), HasSubstr("TOML")));
  EXPECT_THAT(read("[parallelism]\ntensor_paralel_degree = 8\n"), HasSubstr("tensor_parallel_degree"));
  EXPECT_THAT(read("[paralelism]\n"), HasSubstr("parallelism"));
  EXPECT_THAT(read("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1F1C\"\n"),
              HasSubstr("1F1B"));
  EXPECT_THAT(read("[activation_checkpoint]\nmode = \"some\"\n"), HasSubstr("mode"));
}

}  // namespace
}  // namespace rehearse
