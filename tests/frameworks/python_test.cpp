// Configurations that stand in Python: registries of torchtitan and recipes of Megatron-Bridge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/kinds.h"
#include "frameworks/python_values.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

Json configuration(const std::string& text, const std::string& function = "f",
                   const ShellInputs& inputs = {}) {
  return PythonFile(text, "x.py", inputs).call(function).json;
}

Imported read_python(const std::string& name, const std::string& text, const ImportRequest& request) {
  const LaunchFile file{name, text};
  return detect_kind(file).kind->read(file, request, [](const std::string&) { return std::int64_t{32}; });
}

TEST(Python, EvaluatesPlainAssignments) {
  const Json found = configuration(
      "SEQ: int = 4 * 1024\n"
      "def base(seq=SEQ, tp=1):\n"
      "    return Config(model=Model(seq=seq, tp=tp), train=dict(gbs=2**10 // 4))\n"
      "def f():\n"
      "    '''A configuration.'''\n"
      "    cfg = base(tp=8)\n"
      "    model = cfg.model\n"
      "    model.pp = 2 if cfg.model.tp > 4 else 1\n"
      "    cfg.train.mbs, other = 3, 4\n"
      "    a, b = 5, 6\n"
      "    cfg.train.steps = a + b\n"
      "    if cfg.model.tp == 8:\n"
      "        cfg.model.cp = 2\n"
      "    else:\n"
      "        cfg.model.cp = 1\n"
      "    cfg.train.gbs *= 2\n"
      "    cfg.type = torch.float32\n"
      "    return cfg\n");
  EXPECT_EQ(found["model"]["seq"], 4096);
  EXPECT_EQ(found["model"]["tp"], 8);
  EXPECT_EQ(found["model"]["pp"], 2) << "set by another name of the object";
  EXPECT_EQ(found["model"]["cp"], 2);
  EXPECT_EQ(found["train"]["gbs"], 512);
  EXPECT_EQ(found["train"]["steps"], 11);
  EXPECT_EQ(found["type"], "torch.float32");
}

TEST(Python, LeavesOpenWhatTheFileDoesNotDecide) {
  const std::string text =
      "def f():\n"
      "    cfg = Config(replicas=get_world_size() // 8, seq=4096, n=1)\n"
      "    if get_world_size() >= 1024:\n"
      "        cfg.seq = 8192\n"
      "    for one in range(3):\n"
      "        cfg.n += 1\n"
      "    tune(cfg)\n"
      "    return cfg\n";
  const PythonResult found = PythonFile(text, "x.py", {}).call("f");
  EXPECT_THAT(found.json["seq"].get<std::string>(), HasSubstr("$if_of_line_4")) << "no branch is guessed";
  EXPECT_THAT(found.json["n"].get<std::string>(), HasSubstr("$"));
  EXPECT_THAT(found.json["replicas"].get<std::string>(), HasSubstr("$"));
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("line 7: tune is not read"), HasSubstr("--source"))));
  ShellInputs inputs;
  inputs.variables["get_world_size"] = "64";
  EXPECT_EQ(configuration(text, "f", inputs)["seq"], 4096);
  EXPECT_EQ(configuration(text, "f", inputs)["replicas"], 8);
}

TEST(Python, RefusesWhatIsNotClosedAndNestsTooDeep) {
  EXPECT_THAT(refusal([] { configuration("x = (1,\n"); }), HasSubstr("a bracket is not closed"));
  EXPECT_THAT(refusal([] { configuration("x = 'a\n"); }), HasSubstr("a string is not closed"));
  EXPECT_THAT(refusal([] { configuration("x = 'a\\"); }), HasSubstr("a string is not closed"));
  EXPECT_EQ(configuration("def f():\n  return " + std::string(5000, '-') + "1\n"), 1);
  EXPECT_EQ(refusal([] {
              configuration("def f():\n  return " + std::string(5000, '(') + std::string(5000, ')') + "\n");
            }),
            "no error");
  EXPECT_THAT(refusal([] { configuration("x = '\xac'\n"); }), HasSubstr("UTF-8"));
  EXPECT_EQ(configuration("def g(a=g() + g()):\n  return a\ndef f():\n  return C(a=g())\n")["()"], "C")
      << "a default that calls its own function";
  EXPECT_EQ(configuration(".n += 1\n: = 2\nif\n  x = 1\ndef f():\n  return 1\n"), 1);
  EXPECT_EQ(refusal([] {
              configuration("def f():\n  return C(a=g(" + std::string(59, 'x') + "\xc3\xa4 // 2))\n").dump();
            }),
            "no error");
  std::string twice = "def f():\n  a = 'xxxxxxxx'\n";
  for (int i = 0; i < 60; ++i) twice += "  a = a + a\n";
  EXPECT_EQ(refusal([&] { configuration(twice + "  return Config(a=a)\n"); }), "no error");
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
      refusal([&] { read_python("registry.py", text, request); }),
      AllOf(HasSubstr("one of them must be named"), HasSubstr("rehearse import registry.py llama3_8b")));
  request.shell.arguments = {"llama3_8b"};
  const Imported found = read_python("registry.py", text, request);
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
  EXPECT_EQ(read_python("registry.py", text, request).scenario["plan"]["tp"], 8);
  request.shell.arguments = {"llama3_7b"};
  EXPECT_THAT(refusal([&] { read_python("registry.py", text, request); }),
              HasSubstr("nearest legal: llama3_8b"));
}

TEST(ImportPython, ReadsARegistryWithoutDegrees) {
  ImportRequest request;
  request.gpus = 8;
  const Imported found = read_python(
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
  const Imported alone = read_python("llama.py", text, request);
  EXPECT_EQ(alone.scenario["plan"]["tp"], 4);
  EXPECT_EQ(alone.scenario["plan"]["global_batch"], 512);
  EXPECT_THAT(alone.notes,
              Contains(AllOf(HasSubstr("_pretrain_common is not defined"), HasSubstr("--source"))));
  EXPECT_THAT(alone.notes, Contains(HasSubstr("the network is that of meta-llama/Llama-3.2-1B")));
  const std::string narrow = "cfg.mixed_precision = get_mixed_precision_config('bf16_mixed')\n    return cfg";
  std::string named = text;
  named.replace(named.find("return cfg"), 10, narrow);
  EXPECT_EQ(read_python("llama.py", named, {}).scenario["plan"]["precision"], "bf16");
  request.shell.files["common.py"] =
      "def _pretrain_common():\n"
      "    return ConfigContainer(model=None, train=TrainingConfig(micro_batch_size=2),\n"
      "        ddp=DDP(overlap_grad_reduce=True, use_distributed_optimizer=True), "
      "mixed_precision='bf16_mixed')\n";
  const Json plan = read_python("llama.py", text, request).scenario["plan"];
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["overlap_grad_reduce"], true);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["zero"], 1);
}

TEST(ImportPython, NamesProgramsThatAreNotRead) {
  EXPECT_THAT(refusal([] {
                detect_kind({"train.py", "from olmo_core.config import DType\n"});
              }),
              AllOf(HasSubstr("OLMo-core"), HasSubstr("as flags")));
  EXPECT_THAT(refusal([] {
                detect_kind({"train.py", "print(1)\n"});
              }),
              HasSubstr("of no supported framework"));
}

}  // namespace
}  // namespace rehearse
