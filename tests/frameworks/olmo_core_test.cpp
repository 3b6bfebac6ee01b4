#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/kinds.h"
#include "frameworks/samples.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A script in the form of OLMo-core's src/scripts/train: builders of parts, which main() puts together.
std::string script(const std::string& module, const std::string& model = "olmo2_7B",
                   const std::string& settings = "") {
  return "from functools import partial\n"
         "from olmo_core.internal.common import CLUSTER_TO_GPU_TYPE\n"
         "from olmo_core.internal.experiment import CommonComponents, build_config, main\n"
         "SEQUENCE_LENGTH = 4096\n"
         "def build_model_config(common: CommonComponents) -> TransformerConfig:\n"
         "    return TransformerConfig." +
         model +
         "(vocab_size=common.tokenizer.padded_vocab_size())\n"
         "def build_train_module_config(common: CommonComponents) -> TransformerTrainModuleConfig:\n"
         "    rank_microbatch_size = 2 * common.max_sequence_length\n"
         "    return TransformerTrainModuleConfig(\n"
         "        rank_microbatch_size=rank_microbatch_size,\n"
         "        max_sequence_length=common.max_sequence_length,\n"
         "        max_grad_norm=1.0,\n"
         "        scheduler=CosWithWarmup(warmup_steps=2000),\n" +
         module +
         "    )\n"
         "def build_trainer_config(common: CommonComponents) -> TrainerConfig:\n"
         "    return TrainerConfig(save_folder=common.save_folder).with_callback('x', "
         "WandBCallback(name='y'))\n"
         "if __name__ == '__main__':\n"
         "    config_builder = partial(\n"
         "        build_config, global_batch_size=1024 * SEQUENCE_LENGTH,\n"
         "        max_sequence_length=SEQUENCE_LENGTH, model_config_builder=build_model_config,\n"
         "        train_module_config_builder=build_train_module_config,\n"
         "        trainer_config_builder=build_trainer_config," +
         settings +
         ")\n"
         "    main(config_builder=config_builder)\n";
}

constexpr const char* kSharded =
    "        compile_model=True,\n"
    "        optim=SkipStepAdamWConfig(lr=3e-4, betas=(0.9, 0.95)),\n"
    "        dp_config=TransformerDataParallelConfig(\n"
    "            name=DataParallelType.hsdp, param_dtype=DType.bfloat16, reduce_dtype=DType.float32,\n"
    "            wrapping_strategy=TransformerDataParallelWrappingStrategy.blocks),\n"
    "        float8_config=Float8Config(enabled=False),\n";

ImportRequest on_gpus(int gpus) {
  ImportRequest request;
  request.gpus = gpus;
  return request;
}

Imported read(const std::string& module, int gpus = 64) {
  return read_launch("train.py", script(module), on_gpus(gpus));
}

// src/scripts/train/OLMo2/OLMo2-7B.py at fa6c5014.
TEST(ImportOlmoCore, ReadsATrainingScript) {
  const Imported found = read(kSharded);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 64);
  EXPECT_EQ(plan["framework"], "torchtitan");
  EXPECT_EQ(plan["seq"], 4096);
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["global_batch"], 1024) << "tokens over the sequence";
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_EQ(plan["zero_shard"], 8) << "a replica for each of 8 nodes";
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["grad_reduce"], "fp32");
  EXPECT_EQ(plan["clip_grad"], 1);
  EXPECT_EQ(plan["recompute"], "none");
  EXPECT_EQ(plan["fused_cross_entropy"], true);
  EXPECT_EQ(plan["fused_adam"], false) << "SkipStepAdamW takes a kernel for each operation";
  EXPECT_TRUE(found.model.is_null());
  EXPECT_EQ(fate_of(found, "train_module.dp_config.name"), "used");
  EXPECT_EQ(fate_of(found, "train_module.scheduler.warmup_steps"), "free");
  EXPECT_THAT(found.notes, AllOf(Contains(HasSubstr("the network is that of TransformerConfig.olmo2_7B")),
                                 Not(Contains(HasSubstr("unknown")))));
}

// A branch that the file does not decide leaves its values open. Words decide them, as they do in a run.
TEST(ImportOlmoCore, NamesTheBranchThatLeavesAValueOpen) {
  std::string text = script(kSharded, "olmo2_7B", " num_nodes=4");
  const std::string before = "    return TransformerTrainModuleConfig(\n";
  text.insert(text.find(before),
              "    if common.launch is not None:\n"
              "        gpus = {CLUSTER_TO_GPU_TYPE.get(c, 'unknown') for c in common.launch.clusters}\n"
              "        if all('B200' in g for g in gpus):\n"
              "            rank_microbatch_size *= 2\n");
  ImportRequest request = on_gpus(0);
  EXPECT_THAT(refusal([&] { read_launch("train.py", text, request); }),
              AllOf(HasSubstr("train_module.rank_microbatch_size"), HasSubstr("if common.launch is not None"),
                    HasSubstr("train.py train_module.rank_microbatch_size=VALUE")));
  request.shell.variables["train_module.rank_microbatch_size"] = "16384";
  const Imported found = read_launch("train.py", text, request);
  EXPECT_EQ(found.scenario["plan"]["micro_batch"], 4);
  EXPECT_EQ(found.scenario["gpus"], 32);
}

TEST(ImportOlmoCore, TakesOverridesAsItsCommandLineDoes) {
  ImportRequest request = on_gpus(0);
  request.shell.variables["launch.num_nodes"] = "16";
  request.shell.variables["train_module.dp_config.shard_degree"] = "32";
  const Imported found = read_launch("train.py", script(kSharded), request);
  EXPECT_EQ(found.scenario["gpus"], 128);
  EXPECT_EQ(found.scenario["plan"]["zero_shard"], 32);
}

TEST(ImportOlmoCore, ReadsEachPartOfParallelism) {
  const auto plan = [](const std::string& lines) { return read(lines, 128).scenario["plan"]; };
  const std::string hsdp =
      "        dp_config=TransformerDataParallelConfig(name=DataParallelType.hsdp, shard_degree=";
  EXPECT_EQ(plan(hsdp + "32),\n")["zero_shard"], 32);
  const Json context =
      plan(hsdp + "8),\n        cp_config=TransformerContextParallelConfig.ulysses(degree=2),\n");
  EXPECT_EQ(context["cp"], 2);
  EXPECT_EQ(context["cp_comm_type"], "a2a");
  EXPECT_EQ(context["zero_shard"], 16) << "the context's ranks shard too";
  EXPECT_EQ(
      plan(hsdp +
           "8),\n        cp_config=TransformerContextParallelConfig.llama3(degree=8),\n")["cp_comm_type"],
      "allgather");
  EXPECT_EQ(
      plan(hsdp +
           "8),\n        cp_config=TransformerContextParallelConfig.zig_zag(degree=8),\n")["cp_comm_type"],
      "p2p");
  const Json tensor = plan(hsdp + "8),\n        tp_config=TransformerTensorParallelConfig(degree=4),\n");
  EXPECT_EQ(tensor["tp"], 4);
  EXPECT_EQ(tensor["sequence_parallel"], true);
  const Json stages = plan(hsdp +
                           "8),\n        pp_config=TransformerPipelineParallelConfig(degree=4, "
                           "schedule=PipelineScheduleType.single_1F1B),\n");
  EXPECT_EQ(stages["schedule"], "1f1b");
  EXPECT_EQ(stages["reshard_after_forward"], false);
  const Json experts = plan(
      "        dp_config=TransformerDataParallelConfig(name=DataParallelType.hsdp, num_replicas=1),\n"
      "        ep_config=TransformerExpertParallelConfig(degree=-1),\n");
  EXPECT_EQ(experts["ep"], 128);
  const Json replicas = plan(
      "        dp_config=TransformerDataParallelConfig(name=DataParallelType.ddp, "
      "param_dtype=DType.bfloat16),\n");
  EXPECT_EQ(replicas["zero"], 0);
  EXPECT_EQ(replicas["recipe"], "bf16");
  EXPECT_EQ(plan("        dp_config=TransformerDataParallelConfig(name=DataParallelType.fsdp),\n"
                 "        autocast_precision=DType.bfloat16,\n")["precision"],
            "bf16");
}

TEST(ImportOlmoCore, ReadsRecomputeAndFloat8) {
  const auto plan = [](const std::string& lines) { return read(kSharded + lines).scenario["plan"]; };
  const std::string again = "        ac_config=TransformerActivationCheckpointingConfig(";
  EXPECT_EQ(plan(again + "),\n")["recompute"], "full") << "the class's default";
  EXPECT_EQ(plan(again + "mode=TransformerActivationCheckpointingMode.selected_ops),\n")["recompute"], "op");
  const Json modules = plan(again +
                            "mode=TransformerActivationCheckpointingMode.selected_modules,\n"
                            "            modules=[f'blocks.{i}.feed_forward' for i in range(32)]),\n");
  EXPECT_EQ(modules["recompute"], "selective");
  EXPECT_EQ(modules["recompute_modules"], "mlp");
  const std::string blocks = kSharded + again + "mode='selected_blocks', block_interval=4),\n";
  EXPECT_THAT(read(blocks).notes, Contains(HasSubstr("block_interval is approximated")));
  ImportRequest request = on_gpus(64);
  request.shell.variables["model.n_layers"] = "32";
  EXPECT_EQ(read_launch("train.py", script(blocks), request).scenario["plan"]["recompute_num_layers"], 8);
  EXPECT_THAT(read(kSharded + again + "mode='budget', activation_memory_budget=0.5),\n").notes,
              Contains(HasSubstr("activation_memory_budget 0.5 is approximated")));
  const std::string fp8 = std::string(kSharded).substr(0, std::string(kSharded).find("        float8"));
  const auto scaling = [&](const std::string& words) {
    return read(fp8 + "        float8_config=Float8Config(" + words + "),\n").scenario["plan"];
  };
  EXPECT_EQ(scaling("ao=AOFloat8LinearConfig.recommended()")["fp8_scaling"], "tensor-gathered");
  EXPECT_EQ(scaling("ao_recipe=AOFloat8LinearRecipe.rowwise")["fp8_scaling"], "row");
  EXPECT_EQ(scaling("ao_mx=AOMXLinearConfig.mxfp8_cublas()")["fp8_scaling"], "mx");
  EXPECT_EQ(scaling("enabled=False, ao=AOFloat8LinearConfig.recommended()")["precision"], "bf16");
}

TEST(ImportOlmoCore, NamesWhatIsNotCounted) {
  std::string text = script(kSharded);
  text.replace(text.find("WandBCallback(name='y')"), 23, "BatchSizeSchedulerCallback(sizes=[1, 2])");
  EXPECT_THAT(read_launch("train.py", text, on_gpus(64)).notes,
              Contains(HasSubstr("callback BatchSizeSchedulerCallback is ignored")));
  const Imported found =
      read(std::string(kSharded) + "        z_loss_multiplier=1e-5,\n        own_setting=3,\n");
  EXPECT_THAT(
      found.notes,
      AllOf(Contains(HasSubstr("z_loss_multiplier 1e-05 is ignored")),
            Contains(HasSubstr("unknown, and ignored with unknown effect: train_module.own_setting"))));
  EXPECT_EQ(fate_of(found, "train_module.z_loss_multiplier"), "ignored");
  EXPECT_EQ(fate_of(found, "train_module.own_setting"), "unknown");
}

// Scripts of src/scripts/train/sft make the configuration in a function of its class.
TEST(ImportOlmoCore, NamesTheFunctionAndTheWordsThatDecideAConfiguration) {
  const std::string sft =
      "from olmo_core.nn.transformer import TransformerConfig\n"
      "class SFTConfig(Config):\n"
      "    @classmethod\n"
      "    def build(cls, *, seq_len: int, num_nodes: int, overrides: List[str], seed: int = 1) -> "
      "'SFTConfig':\n"
      "        return SFTConfig(\n"
      "            model=TransformerConfig.olmo2_7B(vocab_size=100352),\n"
      "            train_module=TransformerTrainModuleConfig(rank_microbatch_size=seq_len,\n"
      "                max_sequence_length=seq_len),\n"
      "            data_loader=NumpyDataLoaderConfig(global_batch_size=num_nodes * 8 * seq_len))\n"
      "def train(config):\n"
      "    config.trainer.fit()\n";
  EXPECT_THAT(refusal([&] { read_launch("sft.py", sft); }),
              HasSubstr("rehearse import sft.py SFTConfig.build"));
  ImportRequest request = on_gpus(64);
  request.shell.arguments = {"SFTConfig.build"};
  EXPECT_THAT(refusal([&] { read_launch("sft.py", sft, request); }),
              HasSubstr("rehearse import sft.py SFTConfig.build seq_len=VALUE num_nodes=VALUE, of which"));
  request.shell.variables["seq_len"] = "4096";
  request.shell.variables["num_nodes"] = "8";
  EXPECT_EQ(read_launch("sft.py", sft, request).scenario["plan"]["seq"], 4096);
}

TEST(ImportOlmoCore, NamesWhatALadderLeavesOpen) {
  const std::string ladder =
      "from olmo_core.internal.ladder import main\n"
      "def configure_model(args):\n    return Olmo3ModelConfigurator(rank_microbatch_size=None)\n"
      "if __name__ == '__main__':\n    main(configure_model=configure_model)\n";
  EXPECT_THAT(refusal([&] { read_launch("ladder.py", ladder, on_gpus(64)); }),
              AllOf(HasSubstr("is a ladder of models"), HasSubstr("rehearse simulate --model")));
}

}  // namespace
}  // namespace rehearse
