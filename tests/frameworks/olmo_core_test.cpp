#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/kinds.h"
#include "frameworks/samples.h"
#include "model/model.h"
#include "model/read.h"

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
         "    if common.launch is not None:\n"
         "        gpus = {CLUSTER_TO_GPU_TYPE.get(c, 'unknown') for c in common.launch.clusters}\n"
         "        if all('B200' in g for g in gpus):\n"
         "            rank_microbatch_size *= 2\n"
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

ImportRequest on_gpus(int gpus, const std::string& cluster = "ai2/jupiter") {
  ImportRequest request;
  request.gpus = gpus;
  request.shell.variables = {{"cluster", cluster}};
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
  EXPECT_EQ(found.model["model_type"], "block_list");
  EXPECT_EQ(found.model["vocab_size"], 100352) << "100278, padded to a multiple of 128";
  EXPECT_EQ(fate_of(found, "train_module.dp_config.name"), "used");
  EXPECT_EQ(fate_of(found, "train_module.scheduler.warmup_steps"), "free");
  EXPECT_THAT(found.notes,
              AllOf(Contains(HasSubstr("allenai/OLMo-core fa6c5014")), Not(Contains(HasSubstr("unknown")))));
}

TEST(ImportOlmoCore, FollowsTheClusterAndTheNodes) {
  EXPECT_EQ(
      read_launch("train.py", script(kSharded), on_gpus(64, "ai2/titan")).scenario["plan"]["micro_batch"], 4);
  const std::string open = refusal([] { read_launch("train.py", script(kSharded)); });
  EXPECT_THAT(open, AllOf(HasSubstr("rank_microbatch_size"), HasSubstr("cluster=ai2/jupiter")));
  ImportRequest request = on_gpus(0);
  const Imported found = read_launch("train.py", script(kSharded, "olmo2_7B", " num_nodes=4"), request);
  EXPECT_EQ(found.scenario["gpus"], 32);
  request.shell.variables["num_nodes"] = "2";
  EXPECT_EQ(read_launch("train.py", script(kSharded, "olmo2_7B", " num_nodes=4"), request).scenario["gpus"],
            16);
}

TEST(ImportOlmoCore, TakesOverridesAsItsCommandLineDoes) {
  ImportRequest request = on_gpus(0);
  request.shell.variables["launch.num_nodes"] = "16";
  request.shell.variables["train_module.dp_config.shard_degree"] = "32";
  const Imported found = read_launch("train.py", script(kSharded), request);
  EXPECT_EQ(found.scenario["gpus"], 128);
  EXPECT_EQ(found.scenario["plan"]["zero_shard"], 32);
}

TEST(ImportOlmoCore, ReadsBothOtherForms) {
  const std::string body =
      "    return ExperimentConfig(\n"
      "        model=TransformerConfig.olmo3_7B(vocab_size=TokenizerConfig.dolma2().padded_vocab_size()),\n"
      "        dataset=NumpyFSLDatasetConfig.from_data_mix(DataMix.x, sequence_length=length),\n"
      "        data_loader=NumpyDataLoaderConfig(global_batch_size=8192 * 512),\n"
      "        train_module=TransformerTrainModuleConfig(rank_microbatch_size=2 * 8192,\n"
      "            max_sequence_length=length, optim=AdamWConfig(fused=True),\n"
      "            dp_config=TransformerDataParallelConfig(name=DataParallelType.fsdp)),\n"
      "        trainer=TrainerConfig(save_folder=opts.save_folder)).merge(overrides)\n";
  const std::string head = "from olmo_core.script_utils import main\ndef build_config(opts, overrides):\n";
  const Imported by_options = read_launch("train.py",
                                          head + "    length = opts.sequence_length or 8192\n" + body +
                                              "if __name__ == '__main__':\n    main(build_config)\n",
                                          on_gpus(8));
  EXPECT_EQ(by_options.scenario["plan"]["seq"], 8192);
  EXPECT_EQ(by_options.scenario["plan"]["micro_batch"], 2);
  EXPECT_EQ(by_options.scenario["plan"]["global_batch"], 512);
  EXPECT_EQ(by_options.scenario["plan"]["precision"], "fp32") << "no param_dtype";
  EXPECT_EQ(by_options.scenario["plan"]["fused_adam"], true);
  const Imported by_own_main = read_launch(
      "train.py",
      head + "    length = 4096\n" + body + "def main():\n    config = build_config(1, [])\nmain()\n",
      on_gpus(8));
  EXPECT_EQ(by_own_main.scenario["plan"]["micro_batch"], 4);
  std::string older = script(kSharded);
  older.replace(older.find("config_builder = partial("), std::string("config_builder = partial(").size(),
                "main(");
  older.replace(older.find("build_config, global"), std::string("build_config, ").size(), "");
  older.erase(older.find("    main(config_builder=config_builder)"));
  EXPECT_EQ(read_launch("train.py", older, on_gpus(64)).scenario["plan"]["global_batch"], 1024);
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
  const Json blocks = plan(again + "mode='selected_blocks', block_interval=4),\n");
  EXPECT_EQ(blocks["recompute_method"], "block");
  EXPECT_EQ(blocks["recompute_num_layers"], 8);
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
  const Imported found =
      read(std::string(kSharded) + "        z_loss_multiplier=1e-5,\n        own_setting=3,\n");
  EXPECT_THAT(
      found.notes,
      AllOf(Contains(HasSubstr("z_loss_multiplier 1e-05 is ignored")),
            Contains(HasSubstr("unknown, and ignored with unknown effect: train_module.own_setting"))));
  EXPECT_EQ(fate_of(found, "train_module.z_loss_multiplier"), "ignored");
  EXPECT_EQ(fate_of(found, "train_module.own_setting"), "unknown");
}

// A setting of a part of the network has its effect, or a note names it.
TEST(ImportOlmoCore, NamesEachSettingOfTheNetwork) {
  const auto with = [](const std::string& key, const std::string& value) {
    ImportRequest request = on_gpus(64);
    request.shell.variables["model." + key] = value;
    return read_launch("train.py", script(kSharded), request);
  };
  EXPECT_EQ(with("block.layer_norm.name", "default").model["normalization"], "LayerNorm without bias");
  EXPECT_EQ(with("dtype", "bfloat16").scenario["plan"]["recipe"], "bf16");
  EXPECT_EQ(with("block.name", "peri_norm").model["norm_place"], "both");
  EXPECT_EQ(with("block.sequence_mixer.n_kv_heads", "8").model["blocks"]["attention"]["num_key_value_heads"],
            8);
  for (const char* part : {"block.own", "block.sequence_mixer.own", "block.feed_forward.own", "lm_head.own"})
    EXPECT_THAT(with(part, "3").notes, Contains(HasSubstr("own of the"))) << part;
  EXPECT_THAT(with("block.dropout", "0.1").notes, Contains(HasSubstr("model.block.dropout is ignored")));
  EXPECT_THAT(with("block.feed_forward.activation", "relu").notes,
              Contains(HasSubstr("activation relu is approximated")));
  EXPECT_THAT(with("freeze_params", "[a]").notes,
              Contains(HasSubstr("all parameters are counted as trained")));
}

// src/scripts/train/OLMo_hybrid/OLMo-hybrid-7B.py: a preset that the script changes.
TEST(ImportOlmoCore, FollowsChangesOfAPreset) {
  std::string text = script(kSharded);
  const std::string before =
      "    return TransformerConfig.olmo2_7B(vocab_size=common.tokenizer.padded_vocab_size())\n";
  text.replace(text.find(before), before.size(),
               "    config = TransformerConfig.olmo3_7B(vocab_size=common.tokenizer.padded_vocab_size())\n"
               "    config.d_model -= 2 * 128\n"
               "    heads = config.block.sequence_mixer.n_heads - 2\n"
               "    config.block.sequence_mixer.n_heads = heads\n"
               "    attn = config.block\n"
               "    gdn = attn.replace(sequence_mixer=GatedDeltaNetConfig(\n"
               "        n_heads=heads, head_dim=int(0.75 * config.d_model / heads), allow_neg_eigval=True))\n"
               "    config.block = {'gdn': gdn, 'attn': attn}\n"
               "    config.block_pattern = ['gdn', 'gdn', 'gdn', 'attn']\n"
               "    return config\n");
  const Imported found = read_launch("train.py", text, on_gpus(64));
  EXPECT_EQ(found.model["hidden_size"], 3840);
  EXPECT_EQ(found.model["blocks"]["attention"]["num_attention_heads"], 30);
  EXPECT_EQ(found.model["blocks"]["gdn"]["linear_value_head_dim"], 192);
  EXPECT_EQ(found.model["layers"],
            Json::parse(R"([{"repeat": 8, "pattern": ["gdn+mlp", "gdn+mlp", "gdn+mlp", "attention+mlp"]}])"));
}

struct Preset {
  const char* name;
  std::int64_t parameters;
};

// Parameters with a vocabulary of 100,352, or Gemma's of 262,208. They follow num_params() of OLMo-core's
// configurations (fa6c5014, nn/transformer/config.py and the parts that it names). Exceptions are the biases
// of a shared expert (smallmoe) and the third norm of a hybrid block (small_hybrid_moe). Published: OLMo 2
// 1B, 7B, 13B and 32B (tests/model/published_models.json).
constexpr Preset kPresets[] = {
    {"olmo2_1M", 2448620},           {"olmo2_14M", 26740864},      {"olmo2_30M", 54792448},
    {"olmo2_60M", 95957376},         {"olmo2_100M", 153117184},    {"olmo2_190M", 267424512},
    {"olmo2_370M", 474022912},       {"olmo2_600M", 732255552},    {"olmo2_760M", 912360960},
    {"olmo2_1B", 1619150848},        {"olmo2_1B_v2", 1484916736},  {"olmo2_3B", 3503508736},
    {"olmo2_7B", 7298617344},        {"olmo2_13B", 13716198400},   {"olmo2_32B", 32234279936},
    {"olmo3_1M", 2448620},           {"olmo3_14M", 26740864},      {"olmo3_30M", 54792448},
    {"olmo3_60M", 95957376},         {"olmo3_100M", 153117184},    {"olmo3_190M", 267424512},
    {"olmo3_370M", 474022912},       {"olmo3_600M", 676414720},    {"olmo3_760M", 912360960},
    {"olmo3_1B", 1484916736},        {"olmo3_3B", 3503508736},     {"olmo3_7B", 7298617344},
    {"olmo3_13B", 13716198400},      {"olmo3_32B", 32234279936},   {"smallmoe", 564990720},
    {"small_hybrid_moe", 564990720}, {"olmoe_1B_7B", 7124158464},  {"llama2_271M", 411075584},
    {"llama2_1B", 1335961600},       {"llama2_7B", 7298355200},    {"llama2_13B", 13715788800},
    {"llama2_26B", 26403968000},     {"llama2_70B", 70096527360},  {"llama3_1B", 1384187904},
    {"llama3_8B", 7801671680},       {"llama3_70B", 70130754180},  {"llama3_405B", 404939030528},
    {"gemma3_1B", 3278793600},       {"qwen3_0_6B", 543227904},    {"gemma3_4B", 4573791360},
    {"qwen3_1_7B", 1614930944},      {"gemma3_12B", 12395416320},  {"qwen3_4B", 3890413056},
    {"gemma3_27B", 29698899552},     {"qwen3_8B", 7768159232},     {"qwen3_14B", 16882582528},
    {"qwen3_32B", 30220637184},      {"qwen3_5_0_8B", 600873792},  {"qwen3_5_4B", 3826953216},
    {"qwen3_5_9B", 7330607616},      {"qwen3_5_27B", 24867003904},
};

TEST(ImportOlmoCore, PresetsHaveTheParametersOfOlmoCore) {
  for (const Preset& preset : kPresets) {
    SCOPED_TRACE(preset.name);
    std::string text = script(kSharded, preset.name);
    if (std::string(preset.name).starts_with("gemma3")) {
      const std::string words = "vocab_size=common.tokenizer.padded_vocab_size()";
      text.replace(text.find(words), words.size(), "");
    }
    const Imported found = read_launch("train.py", text, on_gpus(64));
    ASSERT_FALSE(found.model.is_null()) << join(found.notes);
    Json config = found.model;
    config["name"] = preset.name;
    EXPECT_EQ(count_parameters(read_inline_model(config, "train.py", "")).total, preset.parameters);
  }
}

// nGPT's blocks have no norms. Their weights are normalized after each step.
TEST(ImportOlmoCore, AsksForANetworkThatItDoesNotRead) {
  const Imported found = read_launch("train.py", script(kSharded, "ngpt_1B"), on_gpus(64));
  EXPECT_TRUE(found.model.is_null());
  EXPECT_THAT(found.notes, Contains(HasSubstr("nGPT normalizes its weights: pass --model")));
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
