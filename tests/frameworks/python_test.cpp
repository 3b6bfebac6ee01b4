// Configurations that stand in Python: registries of torchtitan and recipes of Megatron-Bridge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "frameworks/kinds.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

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

// A value of another type is never a default: Python's 16384 / 2 is a float.
TEST(ImportPython, RefusesValuesOfAnotherType) {
  const auto read = [](const std::string& length, const SaidOverFile& over = {}) {
    ImportRequest request;
    request.gpus = 8;
    request.over = over;
    return read_launch(
        "llama3/config_registry.py",
        "import torchtitan\ndef llama3_8b():\n    return Trainer.Config(\n"
        "        model_spec=model_registry('8B'),\n        training=TrainingConfig(\n"
        "            num_tokens_per_microbatch_per_dp_rank=32768,\n            max_context_length=" +
            length + "))\n",
        request);
  };
  for (const char* value : {"16384/2", "8192.0", "'8192'", "None", "True", "2.5"})
    EXPECT_THAT(refusal([&] { read(value); }),
                AllOf(HasSubstr("line 7: training.max_context_length"), HasSubstr("must be an int")))
        << value;
  EXPECT_THAT(refusal([&] { read("16384/2"); }), HasSubstr("found 8192.0, a float); nearest legal: 8192"));
  EXPECT_EQ(read("16384//2").scenario["plan"]["micro_batch"], 4);
  EXPECT_EQ(read("2**3**2").scenario["plan"]["seq"], 512) << "to the right";
  EXPECT_EQ(read("None", {{"/plan/seq", "4096"}}).scenario["plan"]["micro_batch"], 8) << "the flag decides";
}

TEST(ImportPython, NamesTheLineOfAnOpenValue) {
  const auto read = [](const std::string& lines, const std::map<std::string, std::string>& words = {}) {
    ImportRequest request;
    request.gpus = 8;
    request.shell = {words, {"f"}, {}, {}};
    return read_launch("registry.py",
                       "import torchtitan, os\nNODES = [n for n in os.environ['N'].split(',')]\n"
                       "LETTERS = [c for c in 'abc']\ndef f():\n"
                       "    c = Trainer.Config(model_spec=model_registry('8B'),\n"
                       "        training=TrainingConfig(max_context_length=4096))\n" +
                           lines + "    return c\n",
                       request);
  };
  const std::string key = "    c.training.num_tokens_per_microbatch_per_dp_rank = 4096 * len(";
  EXPECT_EQ(read(key + "LETTERS)\n").scenario["plan"]["micro_batch"], 3);
  EXPECT_THAT(refusal([&] { read(key + "NODES)\n"); }),
              AllOf(HasSubstr("line 2: training.num_tokens_per_microbatch_per_dp_rank"),
                    HasSubstr("os.environ"), HasSubstr("or the log that the run saves")));
  EXPECT_EQ(read(key + "NODES)\n", {{"num_tokens_per_microbatch_per_dp_rank", "8192"}})
                .scenario["plan"]["micro_batch"],
            2);
  const std::string degree = "    c.parallelism.tensor_parallel_degree = ";
  EXPECT_THAT(refusal([&] { read("    if size() > 3:\n    " + degree + "2\n"); }),
              AllOf(HasSubstr("line 7: parallelism.tensor_parallel_degree"), HasSubstr("if size() > 3")));
  EXPECT_THAT(refusal([&] { read(degree + "2\n    tune(c.parallelism)\n"); }),
              HasSubstr("tune(c.parallelism)"));
  EXPECT_THAT(
      refusal([&] { read(degree + "2\n    p = c.parallelism\n    for i in g():\n        p.x = i\n"); }),
      HasSubstr("for statement"))
      << "another name of the object";
  EXPECT_THAT(read("    c.metrics.log_freq = steps()\n    c.own = 1 + size()\n").notes,
              AllOf(Contains(HasSubstr("not decided: own")), Contains(HasSubstr("line 8"))));
  EXPECT_THAT(read("", {{"unread", "1"}}).notes, Contains(HasSubstr("unread=... is not used")));
}

TEST(ImportPython, RefusesWhatPythonRefuses) {
  const auto of = [](const std::string& text) {
    return refusal([&] { read_launch("registry.py", "import torchtitan\n" + text); });
  };
  EXPECT_THAT(of("x = (1,\n"), AllOf(HasSubstr("line 2"), HasSubstr("is no Python")));
  EXPECT_THAT(of("x = '\xac'\n"), HasSubstr("UTF-8"));
  EXPECT_THAT(of(std::string("x = '\0'\n", 8)), HasSubstr("null bytes"));
  EXPECT_THAT(of("raise SystemExit(3)\n"), HasSubstr("raises an exception: raise SystemExit(3)"));
  EXPECT_THAT(of("x = " + std::string(5000, '(') + std::string(5000, ')') + "\n"),
              Not(HasSubstr("no error")));
  EXPECT_THAT(of("def f(): return f\n"), HasSubstr("makes no configuration"));
}

// Without python3 the answer says so. One of the current folder never runs.
TEST(ImportPython, NeedsPython) {
  const char* before = std::getenv("PATH");
  const std::string path = before == nullptr ? "" : before;
  setenv("PATH", ".::relative", 1);
  const std::string answer = refusal(
      [] { read_launch("registry.py", "import torchtitan\ndef f():\n    return Trainer.Config()\n"); });
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(answer, AllOf(HasSubstr("$PATH has no python3"), HasSubstr("install python3")));
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
  EXPECT_THAT(refusal([&] { read_launch("llama.py", text, request); }),
              AllOf(HasSubstr("_pretrain_common() decides values that shape the step"),
                    HasSubstr("model.pipeline_model_parallel_size, train.micro_batch_size, precision"),
                    HasSubstr("--pp N --mbs N --precision bf16")));
  request.over = {{"/plan/pp", "1"}, {"/plan/micro_batch", "1"}, {"/plan/precision", "bf16"}};
  const Imported alone = read_launch("llama.py", text, request);
  EXPECT_EQ(alone.scenario["plan"]["tp"], 4);
  EXPECT_EQ(alone.scenario["plan"]["global_batch"], 512);
  EXPECT_THAT(alone.notes, AllOf(Contains(HasSubstr("not decided: what _pretrain_common() sets")),
                                 Contains(HasSubstr("the network is that of meta-llama/Llama-3.2-1B"))));
  const std::string narrow = "cfg.mixed_precision = get_mixed_precision_config('bf16_mixed')\n    return cfg";
  std::string named = text;
  named.replace(named.find("return cfg"), 10, narrow);
  request.over.erase("/plan/precision");
  EXPECT_EQ(read_launch("llama.py", named, request).scenario["plan"]["precision"], "bf16");
  request.over.clear();
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
    return read_launch(
               "llama.py",
               "from megatron.bridge import x\ndef f():\n"
               "    cfg = ConfigContainer(model=GPTProvider(num_layers=8), mixed_precision='bf16_mixed',\n"
               "        ddp=DDP(overlap_grad_reduce=True, use_distributed_optimizer=True))\n" +
                   lines + "    return cfg\n")
        .scenario["plan"];
  };
  const Json fp8 = plan("    cfg.mixed_precision = 'bf16_with_fp8_current_scaling_mixed'\n");
  EXPECT_EQ(fp8["precision"], "fp8");
  EXPECT_EQ(fp8["recipe"], "fp8-weights") << "the name sets fp8_param_gather";
  EXPECT_EQ(fp8["bf16_first_layers"], 1);
  EXPECT_EQ(
      plan("    cfg.mixed_precision = nanov2_bf16_with_fp8_current_scaling_mixed()\n")["bf16_last_layers"],
      2);
  EXPECT_EQ(plan("    cfg.ddp.overlap_grad_reduce = False\n")["overlap_grad_reduce"], false);
  EXPECT_EQ(plan("    cfg.ddp.overlap_grad_reduce = False\n"
                 "    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)\n")["overlap_grad_reduce"],
            true)
      << "its default wins over DDP's";
  EXPECT_EQ(plan("")["fused_cross_entropy"], true) << "the provider's default";
  EXPECT_EQ(plan("")["zero"], 1);
}

// The file's own values of a recipe that nemo/collections/llm/recipes makes.
TEST(ImportPython, ReadsARecipeOfNemo2) {
  const std::string own =
      "    recipe.trainer.strategy.tensor_model_parallel_size = 8\n"
      "    recipe.trainer.strategy.sequence_parallel = True\n"
      "    recipe.trainer.strategy.context_parallel_size = 2\n    recipe.data.global_batch_size = 252\n"
      "    recipe.trainer.callbacks.append(run.Config(MegatronCommOverlapCallback, tp_comm_overlap=True))\n"
      "    recipe.trainer.callbacks.append(run.Config(OwnCallback))\n";
  ImportRequest request;
  request.shell.arguments = {"configure"};
  const auto read = [&](const std::string& lines) {
    return read_launch("train.py",
                       "from nemo.collections import llm\nimport nemo_run as run\n"
                       "@run.cli.factory(name='x')\ndef configure(name='x'):\n"
                       "    recipe = llm.llama31_405b.pretrain_recipe(name=name, num_nodes=2, "
                       "num_gpus_per_node=8)\n" +
                           lines + "    return recipe\n",
                       request);
  };
  EXPECT_THAT(refusal([&] { read(own); }),
              AllOf(HasSubstr("llm.llama31_405b.pretrain_recipe() decides values"),
                    HasSubstr("--pp N --mbs N --seq N --precision bf16")));
  request.over = {{"/plan/tp", "8"}, {"/plan/pp", "8"}, {"/plan/micro_batch", "1"}, {"/plan/seq", "8192"}};
  const Imported found =
      read(own + "    recipe.trainer.plugins = run.Config(MegatronMixedPrecision, precision='bf16-mixed')\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(found.scenario["model"], "llama3.1-405b");
  EXPECT_EQ(plan["cp"], 2);
  EXPECT_EQ(plan["global_batch"], 252);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["tp_comm_overlap"], true);
  EXPECT_THAT(found.notes,
              AllOf(Contains(HasSubstr("not decided: what llm.llama31_405b.pretrain_recipe() sets")),
                    Contains(HasSubstr("callback OwnCallback is ignored"))));
  request.over.emplace("/plan/precision", "bf16");
  EXPECT_TRUE(read("    recipe.data.global_batch_size = 8\n    recipe.model.config.num_layers = 4\n")
                  .scenario["model"]
                  .is_null())
      << "another network";
  EXPECT_THAT(refusal([&] { read("    recipe = tune(recipe)\n"); }), HasSubstr("tune(recipe)"));
}

// Settings of NeMo 2 and of converters that the reader once ignored without a note.
TEST(ImportPython, NamesEachSettingOfARecipe) {
  ImportRequest request;
  request.shell.arguments = {"f"};
  request.over = {{"/plan/tp", "1"},           {"/plan/pp", "1"},   {"/plan/micro_batch", "1"},
                  {"/plan/global_batch", "8"}, {"/plan/seq", "64"}, {"/plan/precision", "bf16"}};
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
