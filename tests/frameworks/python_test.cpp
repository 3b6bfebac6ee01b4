// Configurations that stand in Python: registries of torchtitan and recipes of Megatron-Bridge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/kinds.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

TEST(ImportPython, RefusesAConfigurationThatAnotherFileBegins) {
  ImportRequest request;
  request.shell.arguments = {"f"};
  const std::string begins =
      "import torchtitan\ndef f():\n    c = to_other(llama3_8b())\n    c.x = 1\n    return c\n";
  EXPECT_THAT(refusal([&] { read_launch("registry.py", begins, request); }),
              AllOf(HasSubstr("begins with a configuration that another file makes"), HasSubstr("--source")));
}

TEST(ImportPython, ReadsRegistriesOfEachYear) {
  const auto read = [](const std::string& fields, int gpus = 8) {
    ImportRequest request;
    request.gpus = gpus;
    return read_launch("llama3/config_registry.py",
                       "import torchtitan\ndef llama3_8b():\n    return Trainer.Config(" + fields + ")\n",
                       request);
  };
  const std::string spec = "model_spec=model_registry('8B'), ";
  const Imported older =
      read(spec +
           "training=TrainingConfig(local_batch_size=2, seq_len=4096), "
           "activation_checkpoint=ActivationCheckpointConfig(mode='full'), "
           "model_converters=ModelConvertersContainer.Config(converters=[Float8LinearConverter.Config("
           "enable_fsdp_float8_all_gather=True)])");
  EXPECT_EQ(older.scenario["plan"]["recompute"], "full");
  EXPECT_EQ(older.scenario["plan"]["precision"], "fp8");
  EXPECT_EQ(older.scenario["plan"]["fp8_scaling"], "tensor-gathered");
  const std::string tokens =
      "training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192, "
      "max_context_length=4096), ";
  const Imported newer = read(
      "model_spec=model_registry('8B', attn_backend='flex', moe_comm_backend='hybridep', "
      "num_mtp_layers=1, converters=[Float8LinearConverter.Config()]), "
      "loss=ChunkedLossWrapper.Config(), parallelism=ParallelismConfig("
      "enable_sequence_parallel=False, tensor_parallel_degree=2, expert_parallel_degree=2), " +
      tokens);
  EXPECT_EQ(newer.scenario["plan"]["recompute"], "op") << "SelectiveAC is the default";
  EXPECT_EQ(newer.scenario["plan"]["fp8_scaling"], "row");
  EXPECT_EQ(newer.scenario["plan"]["cuda_graph"], true);
  EXPECT_EQ(newer.scenario["plan"]["moe_dispatcher"], "hybridep");
  EXPECT_EQ(newer.scenario["plan"]["sequence_parallel"], false);
  EXPECT_THAT(newer.notes, AllOf(Contains(HasSubstr("loss ChunkedLossWrapper.Config is ignored")),
                                 Contains(HasSubstr("attn_backend flex is ignored")),
                                 Contains(HasSubstr("num_mtp_layers 1 is ignored"))));
  const Json none = read(spec + tokens + "activation_checkpoint=None").scenario["plan"];
  EXPECT_FALSE(none.contains("recompute"));
  EXPECT_EQ(
      read(spec + tokens + "activation_checkpoint=FullAC.Config()").scenario["plan"]["recompute_early_stop"],
      false);
  EXPECT_THAT(refusal([&] { read(spec + tokens + "activation_checkpoint=policy()"); }),
              HasSubstr("activation_checkpoint"));
  EXPECT_EQ(read(spec + tokens, 1).scenario["plan"]["recipe"], "autocast") << "one GPU, no fully_shard";
}

TEST(ImportPython, ReadsARegistryOfTorchtitan) {
  const std::string text =
      "from torchtitan.trainer import Trainer\n"
      "def llama3_8b() -> Trainer.Config:\n"
      "    return Trainer.Config(\n"
      "        model_spec=model_registry('8B', "
      "converters=[Float8LinearConverter.Config(filter_fqns=['lm_head'])]),\n"
      "        optimizer=default_adamw(lr=3e-4),\n"
      "        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=2 * 8192, "
      "max_context_length=8192),\n"
      "        parallelism=ParallelismConfig(tensor_parallel_degree=2, new_key=1),\n"
      "        activation_checkpoint=FullAC.Config(),\n"
      "        compile=CompileConfig(enable=True),\n"
      "    )\n"
      "def llama3_70b():\n"
      "    config = llama3_8b()\n"
      "    config.parallelism.tensor_parallel_degree = 8\n"
      "    return config\n";
  ImportRequest request;
  request.gpus = 16;
  EXPECT_THAT(
      refusal([&] { read_launch("registry.py", text, request); }),
      AllOf(HasSubstr("one of them must be named"), HasSubstr("rehearse import registry.py llama3_8b")));
  request.shell.arguments = {"llama3_8b"};
  const Imported found = read_launch("registry.py", text, request);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["model"], "llama3-8b");
  EXPECT_EQ(plan["tp"], 2);
  EXPECT_EQ(plan["seq"], 8192);
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["global_batch"], 16);
  EXPECT_EQ(plan["precision"], "fp8");
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_THAT(found.notes, Contains(HasSubstr("parallelism.new_key")));
  request.shell.arguments = {"llama3_70b"};
  EXPECT_EQ(read_launch("registry.py", text, request).scenario["plan"]["tp"], 8);
  request.shell.arguments = {"llama3_7b"};
  EXPECT_THAT(refusal([&] { read_launch("registry.py", text, request); }),
              HasSubstr("nearest legal: llama3_8b"));
}

TEST(ImportPython, ReadsARegistryWithoutDegrees) {
  ImportRequest request;
  request.gpus = 8;
  const Imported found = read_launch(
      "models/llama3/config_registry.py",
      "import torchtitan\ndef llama3_8b():\n    return Trainer.Config(model_spec=model_registry('8B'), "
      "training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192, max_context_length=4096))\n",
      request);
  EXPECT_EQ(found.scenario["plan"]["micro_batch"], 2);
  EXPECT_EQ(found.scenario["plan"]["tp"], 1);
  EXPECT_EQ(found.scenario["model"], "llama3-8b");
}

TEST(ImportPython, ReadsARecipeOfMegatronBridgeWithTheFileOfItsDefaults) {
  const std::string text =
      "from megatron.bridge.recipes.common import _pretrain_common\n"
      "def llama_config():\n"
      "    cfg = _pretrain_common()\n"
      "    cfg.model = AutoBridge.from_hf_pretrained('meta-llama/Llama-3.2-1B').get_model_config()\n"
      "    cfg.model.tensor_model_parallel_size = 4\n"
      "    cfg.model.seq_length = 8192\n"
      "    cfg.model.recompute_granularity = None\n"
      "    cfg.train.global_batch_size = 512\n"
      "    cfg.optimizer.exp_avg_dtype = torch.float32\n"
      "    return cfg\n";
  ImportRequest request;
  const Imported alone = read_launch("llama.py", text, request);
  EXPECT_EQ(alone.scenario["plan"]["tp"], 4);
  EXPECT_EQ(alone.scenario["plan"]["global_batch"], 512);
  EXPECT_THAT(alone.notes,
              Contains(AllOf(HasSubstr("_pretrain_common is not defined"), HasSubstr("--source"))));
  EXPECT_THAT(alone.notes, Contains(HasSubstr("the network is that of meta-llama/Llama-3.2-1B")));
  const std::string narrow = "cfg.mixed_precision = get_mixed_precision_config('bf16_mixed')\n    return cfg";
  std::string named = text;
  named.replace(named.find("return cfg"), 10, narrow);
  EXPECT_EQ(read_launch("llama.py", named, {}).scenario["plan"]["precision"], "bf16");
  request.shell.files["common.py"] =
      "def _pretrain_common():\n"
      "    return ConfigContainer(model=None, train=TrainingConfig(micro_batch_size=2),\n"
      "        ddp=DDP(overlap_grad_reduce=True, use_distributed_optimizer=True), "
      "mixed_precision='bf16_mixed')\n";
  const Json plan = read_launch("llama.py", text, request).scenario["plan"];
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["overlap_grad_reduce"], true);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["zero"], 1);
}

// megatron/bridge/training/mixed_precision.py and comm_overlap.py.
TEST(ImportPython, AppliesPrecisionsAndOverlapsOfMegatronBridge) {
  const auto plan = [](const std::string& lines) {
    ImportRequest request;
    request.shell.arguments = {"f"};
    return read_launch("llama.py",
                       "from megatron.bridge import x\ndef f():\n    cfg = _pretrain_common()\n"
                       "    cfg.model = GPTProvider(num_layers=8)\n" +
                           lines + "    return cfg\n",
                       request)
        .scenario["plan"];
  };
  const Json fp8 = plan("    cfg.mixed_precision = 'bf16_with_fp8_current_scaling_mixed'\n");
  EXPECT_EQ(fp8["precision"], "fp8");
  EXPECT_EQ(fp8["recipe"], "fp8-weights") << "the name sets fp8_param_gather";
  EXPECT_EQ(fp8["bf16_first_layers"], 1);
  EXPECT_EQ(
      plan("    cfg.mixed_precision = nanov2_bf16_with_fp8_current_scaling_mixed()\n")["bf16_last_layers"],
      2);
  EXPECT_FALSE(plan("    cfg.ddp.grad_reduce_in_fp32 = False\n").contains("grad_reduce"))
      << "mixed_precision's field wins";
  EXPECT_EQ(plan("    cfg.ddp.overlap_grad_reduce = False\n")["overlap_grad_reduce"], false);
  EXPECT_EQ(plan("    cfg.ddp.overlap_grad_reduce = False\n"
                 "    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)\n")["overlap_grad_reduce"],
            true)
      << "its default wins over DDP's";
  EXPECT_EQ(plan("")["fused_cross_entropy"], true) << "the provider's default";
  EXPECT_EQ(plan("")["zero"], 1);
}

// nemo/collections/llm/recipes, whose values the program's own table holds.
TEST(ImportPython, ReadsARecipeOfNemo2) {
  const auto read = [](const std::string& lines,
                       const std::string& words = "num_nodes=2, num_gpus_per_node=8") {
    ImportRequest request;
    request.shell.arguments = {"configure"};
    return read_launch("train.py",
                       "from nemo.collections import llm\nimport nemo_run as run\ndef configure(name='x'):\n"
                       "    recipe = llm.llama31_405b.pretrain_recipe(name=name, " +
                           words + ")\n" + lines + "    return recipe\n",
                       request);
  };
  const Imported found = read(
      "    recipe.trainer.strategy.context_parallel_size = 2\n    recipe.data.global_batch_size = 252\n"
      "    recipe.model.config.recompute_granularity = 'full'\n"
      "    recipe.model.config.recompute_method = 'uniform'\n    recipe.model.config.recompute_num_layers = "
      "1\n"
      "    recipe.trainer.callbacks.append(run.Config(MegatronCommOverlapCallback, tp_comm_overlap=True))\n"
      "    recipe.trainer.callbacks.append(run.Config(OwnCallback))\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(found.scenario["model"], "llama3.1-405b");
  EXPECT_EQ(plan["tp"], 8);
  EXPECT_EQ(plan["pp"], 8);
  EXPECT_EQ(plan["vpp"], 2);
  EXPECT_EQ(plan["cp"], 2) << "over the recipe's 4";
  EXPECT_EQ(plan["seq"], 8192);
  EXPECT_EQ(plan["micro_batch"], 1);
  EXPECT_EQ(plan["global_batch"], 252);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["zero"], 1);
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_EQ(plan["tp_comm_overlap"], true);
  EXPECT_EQ(plan["embedding_as_layer"], true);
  EXPECT_THAT(found.notes, AllOf(Contains(HasSubstr("NVIDIA-NeMo/NeMo 8cfedd72")),
                                 Contains(HasSubstr("callback OwnCallback is ignored"))));
  EXPECT_THAT(read("", "performance_mode=True").notes,
              Contains(HasSubstr("performance_mode is not followed")));
  EXPECT_TRUE(read("    recipe.model.config.num_layers = 4\n").scenario["model"].is_null())
      << "another network";
  EXPECT_THAT(refusal([] {
                read_launch("train.py", "import nemo.collections\ndef f():\n    return llm.mine.recipe()\n");
              }),
              HasSubstr("begins with a configuration that another file makes"));
}

// Settings of NeMo 2 and of converters that the reader once ignored without a note.
TEST(ImportPython, NamesEachSettingOfARecipe) {
  ImportRequest request;
  request.shell.arguments = {"f"};
  const Imported found = read_launch(
      "train.py",
      "from nemo.collections import llm\ndef f():\n"
      "    recipe = llm.llama3_8b.pretrain_recipe(num_nodes=1)\n"
      "    recipe.data.packed_sequence_specs = Specs(size=4096)\n"
      "    recipe.trainer.plugins.fp8_wgrad = False\n    recipe.trainer.plugins.fp8_margin = 0\n"
      "    recipe.trainer.strategy.ddp = 'pytorch'\n    recipe.trainer.strategy.ckpt_async_save = True\n"
      "    recipe.trainer.max_steps = 10\n    recipe.trainer.own_setting = 3\n    return recipe\n",
      request);
  EXPECT_THAT(found.notes, AllOf(Contains(HasSubstr("data.packed_sequence_specs is ignored")),
                                 Contains(HasSubstr("mixed_precision.fp8_wgrad false is ignored")),
                                 Contains(HasSubstr("model.ddp is ignored"))));
  EXPECT_EQ(fate_of(found, "model.ckpt_async_save"), "free");
  EXPECT_EQ(fate_of(found, "trainer.max_steps"), "free");
  EXPECT_EQ(fate_of(found, "trainer.own_setting"), "unknown");
  const Imported registry =
      read_launch("config_registry.py",
                  "from torchtitan import x\ndef f():\n    return "
                  "Trainer.Config(model_spec=model_registry('8B', converters=[\n"
                  "        MXFP8LinearConverter.Config(mxfp8_dim1_cast_kernel_choice='cuda', own=1),\n"
                  "        Float8LinearConverter.Config(emulate=True)]), "
                  "training=TrainingConfig(max_context_length=8192))\n",
                  request);
  EXPECT_THAT(registry.notes, AllOf(Contains(HasSubstr("mxfp8_dim1_cast_kernel_choice\" is ignored")),
                                    Contains(HasSubstr("converter own 1 is ignored")),
                                    Contains(HasSubstr("\"float8/emulate\" is ignored"))));
}

TEST(ImportPython, NamesProgramsThatAreNotRead) {
  EXPECT_THAT(refusal([] {
                detect_kind({"train.py", "import deepspeed\n"});
              }),
              AllOf(HasSubstr("DeepSpeed"), HasSubstr("as flags")));
  EXPECT_THAT(refusal([] {
                detect_kind({"train.py", "print(1)\n"});
              }),
              HasSubstr("of no supported framework"));
}

}  // namespace
}  // namespace rehearse
