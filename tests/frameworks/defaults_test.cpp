// Values that a file leaves to its program are counted as that program sets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Json plan_in(const Imported& found) {
  return found.scenario["plan"];
}

Imported from_deepspeed(const std::string& keys, int gpus = 8) {
  return import_deepspeed(JsonReader(Json::parse("{" + keys + "}"), "ds.json"), gpus);
}

// deepspeed/runtime/config.py, _set_batch_related_parameters.
TEST(Defaults, DeepSpeedTakesTheShareOfABatchAsOneMicrobatch) {
  EXPECT_EQ(plan_in(from_deepspeed(R"("train_batch_size": 64)"))["micro_batch"], 8);
  EXPECT_EQ(
      plan_in(from_deepspeed(R"("train_batch_size": 64, "gradient_accumulation_steps": 4)"))["micro_batch"],
      2);
  EXPECT_FALSE(plan_in(from_deepspeed(R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto")"))
                   .contains("micro_batch"));
  const Imported open = from_deepspeed(R"("train_batch_size": 64)", 0);
  EXPECT_FALSE(plan_in(open).contains("micro_batch"));
  EXPECT_THAT(open.notes, Contains(AllOf(HasSubstr("train_batch_size"), HasSubstr("--gpus"))));
  const Json split =
      plan_in(from_deepspeed(R"("train_micro_batch_size_per_gpu": 2, "sequence_parallel_size": 4)"));
  EXPECT_EQ(split["cp"], 4);
  EXPECT_EQ(split["cp_comm_type"], "a2a");
  EXPECT_EQ(split["global_batch"], 4) << "2 data-parallel ranks";
}

TEST(Defaults, DeepSpeedIsInFp32WhereNothingIsEnabled) {
  EXPECT_EQ(plan_in(from_deepspeed(R"("fp16": {"enabled": false, "fp16_opt_level": "O2"})"))["precision"],
            "fp32");
  EXPECT_FALSE(plan_in(from_deepspeed(R"("bf16": {"enabled": "auto"})")).contains("precision"));
  EXPECT_THAT(refusal([] { from_deepspeed(R"("fp16": {"enabled": true}, "bf16": {"enabled": true})"); }),
              HasSubstr("must not be true beside bf16"));
  const Json cast = plan_in(from_deepspeed(R"("torch_autocast": {"enabled": true, "dtype": "bfloat16"})"));
  EXPECT_EQ(cast["precision"], "bf16");
  EXPECT_EQ(cast["recipe"], "autocast");
}

TEST(Defaults, DeepSpeedNamesKeysOfItsSections) {
  EXPECT_THAT(from_deepspeed(R"("tensor_parallel": {"tp_size": 4})").notes,
              Contains(AllOf(HasSubstr("tensor_parallel/tp_size"), HasSubstr("unknown"))));
  EXPECT_THAT(from_deepspeed(R"("activation_checkpointing": {"partition_activation": true})").notes,
              Contains(AllOf(HasSubstr("partition_activation\""), HasSubstr("did you mean"))));
  EXPECT_THAT(from_deepspeed(R"("curriculum_learning": {"enabled": false}, "amp": {"enabled": false})").notes,
              Not(Contains(HasSubstr("is ignored"))));
  EXPECT_THAT(from_deepspeed(R"("timers": {}, "log_level": "info", "dataloader_drop_last": true)").notes,
              Not(Contains(HasSubstr("unknown"))));
}

// trl/trainer/base_config.py; axolotl/utils/schemas/config.py.
TEST(Defaults, TrlAndAxolotlTrainInBf16) {
  const Imported trl = read_launch("x.yaml", "model_name_or_path: x\nper_device_train_batch_size: 2\n");
  EXPECT_EQ(plan_in(trl)["precision"], "bf16");
  EXPECT_EQ(plan_in(trl)["recompute"], "full");
  EXPECT_THAT(trl.notes, Contains(HasSubstr("the default of TRL, bf16")));
  const auto axolotl = [](const std::string& more) {
    return plan_in(read_launch("x.yaml", "base_model: x\nmicro_batch_size: 1\n" + more));
  };
  EXPECT_EQ(axolotl("")["precision"], "bf16");
  EXPECT_EQ(axolotl("")["recompute"], "none");
  EXPECT_EQ(axolotl("bf16: false\n")["precision"], "fp32");
  EXPECT_EQ(axolotl("fp16: true\n")["precision"], "fp16");
  const std::string factory = "model_name_or_path: x\nfinetuning_type: full\nlearning_rate: 1\n";
  EXPECT_EQ(plan_in(read_launch("x.yaml", factory))["precision"], "fp32") << "transformers' own";
}

// accelerate/parallelism_config.py: the mesh dp_shard_cp.
TEST(Defaults, ShardsOfAccelerateSpanContextParallelRanks) {
  const std::string degrees =
      "parallelism_config: {parallelism_config_dp_replicate_size: 2, parallelism_config_dp_shard_size: 2, "
      "parallelism_config_cp_size: 2}\n";
  const Imported found = read_launch(
      "x.yaml", "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n" + degrees);
  EXPECT_EQ(plan_in(found)["zero_shard"], 4);
  const Imported axolotl = read_launch("x.yaml",
                                       "base_model: x\nmicro_batch_size: 1\ndp_replicate_size: 2\n"
                                       "dp_shard_size: 2\ncontext_parallel_size: 2\nfsdp_version: 2\n");
  EXPECT_EQ(plan_in(axolotl)["zero_shard"], 4);
  EXPECT_EQ(plan_in(read_launch("x.yaml", "distributed_type: NO\nnum_processes: 1\n"))["zero"], 0);
}

TEST(Defaults, NameProgramsThatAreNotRead) {
  EXPECT_THAT(refusal([] {
                read_launch("x.yaml",
                            "model_name_or_path: x\nfinetuning_type: full\ntensor_model_parallel_size: 4\n");
              }),
              HasSubstr("MCore Adapter"));
  EXPECT_THAT(refusal([] { read_launch("x.json", R"({"pipe-parallel-size": 2, "train_batch_size": 8})"); }),
              HasSubstr("GPT-NeoX"));
  EXPECT_THAT(refusal([] {
                read_launch("x.yml",
                            "base_config: base.yml\nmodel_name: x\nstudent_overrides: {model_name: y}\n");
              }),
              HasSubstr("distillation"));
}

Imported from_nanotron(const std::string& parallelism, const std::string& model) {
  return read_launch("x.yaml",
                     "parallelism: {dp: 2, tp: 1, " + parallelism +
                         "}\ntokens: {micro_batch_size: 1, sequence_length: 4096}\nmodel: {model_config: "
                         "{hidden_size: 64, num_hidden_layers: 4, num_attention_heads: 4, vocab_size: 512, " +
                         model + "}}\n");
}

// nanotron/config/parallelism_config.py, models_config.py; models/qwen.py.
TEST(Defaults, NanotronRunsAllForwardPassesFirst) {
  EXPECT_EQ(plan_in(from_nanotron("pp: 2", ""))["schedule"], "gpipe");
  EXPECT_EQ(plan_in(from_nanotron("pp: 2, pp_engine: 1f1b", ""))["schedule"], "1f1b");
}

TEST(Defaults, NanotronNamesWindowsAndExpertsByItself) {
  const Json windows =
      from_nanotron("pp: 1", "is_qwen2_config: true, sliding_window_size: 128, no_rope_layer: 2").model;
  EXPECT_EQ(windows["sliding_window"], 128);
  EXPECT_EQ(windows["layer_types"],
            Json::parse(R"(["sliding_attention", "full_attention", "sliding_attention",
                                                    "full_attention"])"));
  EXPECT_EQ(windows["no_rope_layers"], Json::parse("[1, 0, 1, 0]"));
  EXPECT_EQ(
      from_nanotron("pp: 1", "is_starcoder2_config: true, sliding_window_size: 128").model["sliding_window"],
      128);
  EXPECT_EQ(from_nanotron("pp: 1", "is_qwen2_config: true, attention_bias: true").model["model_type"],
            "qwen2");
  const Json experts =
      from_nanotron(
          "pp: 1",
          "is_qwen2_config: true, moe_config: {num_experts: 16, top_k: 4, moe_intermediate_size: 96}")
          .model;
  EXPECT_EQ(experts["num_local_experts"], 16);
  EXPECT_EQ(experts["num_experts_per_tok"], 4);
  EXPECT_EQ(experts["intermediate_size"], 96);
  const Imported both =
      from_nanotron("pp: 1", "is_qwen2_config: true, attention_bias: true, sliding_window_size: 128");
  EXPECT_THAT(both.notes, Contains(HasSubstr("sliding_window_size is ignored beside attention_bias")));
}

Imported from_torchtitan(const std::string& text) {
  return import_torchtitan("[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + text, "train.toml", 8, 32);
}

TEST(Defaults, TorchtitanHadAMicrobatchForEachStage) {
  const std::string old = "[training]\nbatch_size = 8\n[experimental]\npipeline_parallel_degree = 2\n";
  EXPECT_EQ(plan_in(from_torchtitan(old))["micro_batch"], 4);
  EXPECT_EQ(plan_in(from_torchtitan(old + "pipeline_parallel_microbatches = 8\n"))["micro_batch"], 1);
  const std::string now = "[training]\nlocal_batch_size = 8\n[parallelism]\npipeline_parallel_degree = 2\n";
  EXPECT_EQ(plan_in(from_torchtitan(now))["micro_batch"], 1);
  EXPECT_EQ(plan_in(from_torchtitan(now + "pipeline_parallel_schedule = \"interleaved1f1b\"\n"))["schedule"],
            "interleaved-1f1b")
      << "PyTorch ignores the case";
}

TEST(Defaults, TorchtitanConvertsTheOutputLayerToo) {
  const auto notes = [](const std::string& keys) {
    return from_torchtitan("converters = [\"float8\"]\n[quantize.linear.float8]\n" + keys).notes;
  };
  EXPECT_THAT(notes(""), Contains(HasSubstr("leaves the output layer in FP8")));
  EXPECT_THAT(notes("filter_fqns = [\"output\"]\n"), Not(Contains(HasSubstr("output layer"))));
}

}  // namespace
}  // namespace rehearse
