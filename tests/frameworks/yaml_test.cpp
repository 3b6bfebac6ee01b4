// YAML of programs that run Megatron-LM, of Accelerate, and the text itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/kinds.h"
#include "frameworks/yaml_text.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Yaml, ReadsWordsAsPythonDoes) {
  const YamlText found = read_yaml(
      "a: yes\nb: 1_000\nc: 1e-5\nd: \"8\"\ne: ~\nf: [1, no]\ng: 0.5\nh: None\ni: none\n", "x.yaml");
  EXPECT_EQ(found.json, Json::parse(R"({"a": true, "b": 1000, "c": 1e-5, "d": "8", "e": null, "f": [1, false],
                                        "g": 0.5, "h": null, "i": "none"})"));
  EXPECT_EQ(found.line("/d"), 4);
}

TEST(Yaml, NoneIsAWordOfOptionsThatHaveIt) {
  const std::string head =
      "MODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 256\n  --num-attention-heads: 4\n";
  const Imported found =
      read_launch("model_config.yaml", head +
                                           "  --seq-length: 512\n  --position-embedding-type: none\n"
                                           "  --recompute-granularity: none\n  --sequence-parallel: false\n");
  EXPECT_EQ(found.model["position_embedding_type"], "none");
  EXPECT_FALSE(found.scenario["plan"].contains("recompute")) << "no value of the option";
  EXPECT_EQ(fate_of(found, "--sequence-parallel"), "used") << "false is listed too";
  EXPECT_EQ(found.options.size(), 7u);
  const Imported primus =
      read_launch("primus.yaml",
                  "modules:\n  pre_trainer:\n    framework: megatron\n    overrides:\n      num_layers: 4\n"
                  "      hidden_size: 256\n      num_attention_heads: 4\n      seq_length: 512\n"
                  "      position_embedding_type: none\n      recompute_granularity: none\n");
  EXPECT_EQ(primus.model["position_embedding_type"], "none");
}

TEST(Yaml, WritesOutAliasesMergesAndPaths) {
  const YamlText found = read_yaml(
      "base: &base {hidden: 256, layers: 4}\nmodel:\n  <<: *base\n  layers: 8\n  ffn: ${multiply:4, "
      "${.hidden}}\n"
      "  seq: ${data.seq}\ndata: {seq: 2048}\n",
      "x.yaml");
  EXPECT_EQ(found.json["model"]["layers"], 8) << "the map's own key wins";
  EXPECT_EQ(found.json["model"]["hidden"], 256);
  EXPECT_EQ(found.json["model"]["ffn"], 1024);
  EXPECT_EQ(found.json["model"]["seq"], 2048);
}

TEST(Yaml, RefusesWhatIsNoneOrTooLarge) {
  EXPECT_THAT(refusal([] { read_yaml("a: [1, 2\nb: 3", "x.yaml"); }), HasSubstr("not valid YAML"));
  EXPECT_THAT(refusal([] { read_yaml(std::string("\x10\0\0\0a: b\n", 9), "x.yaml"); }), HasSubstr("UTF-8"));
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(refusal([&] { read_yaml(bomb, "x.yaml"); }), HasSubstr("holds too many values"));
}

TEST(ImportYaml, ReadsModelConfigOfMegatron) {
  const Imported found =
      read_launch("model_config.yaml",
                  "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\nMODEL_ARGS:\n  --num-layers: 32\n"
                  "  --hidden-size: 4096\n  --num-attention-heads: 32\n  --swiglu: true\n"
                  "  --max-position-embeddings: 4096\n  --vocab-size: 128256\n"
                  "  --sequence-parallel: false\n  --recompute-granularity: null\n"
                  "  --tensor-model-parallel-size: 4\n  --recompute-modules: [moe]\n  --bf16: true\n");
  EXPECT_EQ(found.scenario["plan"]["tp"], 4);
  EXPECT_EQ(found.scenario["plan"]["precision"], "bf16");
  EXPECT_EQ(found.scenario["plan"]["sequence_parallel"], false);
  EXPECT_FALSE(found.scenario["plan"].contains("recompute"));
}

TEST(ImportYaml, ReadsListsThatStandInQuotes) {
  const Imported found = read_launch("model_config.yaml",
                                     "MODEL_ARGS:\n  --num-layers: 4\n  --recompute-granularity: selective\n"
                                     "  --recompute-modules: \"[moe_act layernorm]\"\n");
  EXPECT_EQ(found.scenario["plan"]["recompute_modules"], "moe_act,layernorm");
}

TEST(ImportYaml, ReadsNemo) {
  const Imported found = read_launch(
      "llama2_7b.yaml",
      "run: {name: llama}\ntrainer: {devices: 8, num_nodes: 2, precision: bf16-mixed, gradient_clip_val: "
      "0.5}\n"
      "model:\n  micro_batch_size: 1\n  global_batch_size: 128\n  tensor_model_parallel_size: 2\n"
      "  virtual_pipeline_model_parallel_size: null\n  encoder_seq_length: 4096\n"
      "  max_position_embeddings: ${.encoder_seq_length}\n  num_layers: 32\n  hidden_size: 4096\n"
      "  ffn_hidden_size: 11008\n  num_attention_heads: 32\n  hidden_dropout: 0.0\n  attention_dropout: 0.0\n"
      "  normalization: rmsnorm\n  bias: false\n  activation: fast-swiglu\n  position_embedding_type: rope\n"
      "  share_embeddings_and_output_weights: false\n  override_vocab_size: 32000\n"
      "  activations_checkpoint_granularity: full\n  activations_checkpoint_method: uniform\n"
      "  activations_checkpoint_num_layers: 1\n  my_own_switch: 3\n  "
      "num_micro_batches_with_partial_activation_checkpoints: 2\n"
      "  optim: {name: distributed_fused_adam, lr: 1e-4, overlap_grad_sync: true}\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["zero"], 1);
  EXPECT_EQ(plan["seq"], 4096);
  EXPECT_EQ(plan["clip_grad"], 0.5);
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_EQ(plan["overlap_grad_reduce"], true);
  EXPECT_EQ(found.model["activation"], "swiglu");
  EXPECT_EQ(found.model["vocab_size"], 32000);
  EXPECT_EQ(found.model["tie_word_embeddings"], false);
  EXPECT_EQ(fate_of(found, "run.name"), "free");
  EXPECT_EQ(fate_of(found, "model.my_own_switch"), "unknown");
  EXPECT_EQ(fate_of(found, "model.num_micro_batches_with_partial_activation_checkpoints"), "ignored");
  EXPECT_EQ(fate_of(found, "model.tensor_model_parallel_size"), "used");
}

TEST(ImportYaml, NamesTheKeyOfTheSourceInErrors) {
  EXPECT_THAT(refusal([] {
                read_launch("x.yaml",
                            "trainer: {devices: 8}\nmodel:\n  num_layers: many\n  micro_batch_size: 1\n"
                            "  hidden_size: wide\n");
              }),
              AllOf(HasSubstr("x.yaml: line 3: model.num_layers"), HasSubstr("line 5: model.hidden_size")));
}

TEST(ImportYaml, TakesNemosSwitchOfFp8AndBatchesOfFineTuning) {
  const auto plan = [](const std::string& more) {
    return read_launch("nemo.yaml",
                       "trainer: {devices: 8, precision: bf16}\nmax_length: 256\nmodel:\n  mcore_gpt: true\n"
                       "  encoder_seq_length: 4096\n  micro_batch_size: 1\n  global_batch_size: 8\n" +
                           more)
        .scenario["plan"];
  };
  EXPECT_EQ(plan("  fp8: false\n  fp8_hybrid: true\n")["precision"], "bf16");
  EXPECT_EQ(plan("  fp8_hybrid: true\n")["precision"], "bf16");
  EXPECT_EQ(plan("  fp8: true\n  fp8_e4m3: false\n  fp8_hybrid: true\n")["precision"], "fp8");
  EXPECT_EQ(plan("")["seq"], 4096) << "max_length is of generation";
  const Json tuned = plan(
      "  data: {train_ds: {global_batch_size: 64, micro_batch_size: 2, "
      "max_seq_length: '${fine_tuning.model.my_length}'}}\n  my_length: 2048\n");
  EXPECT_EQ(tuned["global_batch"], 64);
  EXPECT_EQ(tuned["micro_batch"], 2);
  EXPECT_EQ(tuned["seq"], 2048);
}

TEST(ImportYaml, ReadsMegatronBridge) {
  const Imported found = read_launch(
      "run_config.yaml",
      "train: {global_batch_size: 64, micro_batch_size: 2}\n"
      "ddp: {overlap_grad_reduce: true, use_distributed_optimizer: true, grad_reduce_in_fp32: false}\n"
      "mixed_precision: bf16_with_fp8_current_scaling_mixed\n"
      "model:\n  num_layers: 4\n  hidden_size: 256\n  num_attention_heads: 4\n  num_query_groups: 2\n"
      "  gated_linear_unit: true\n  activation_func: {_target_: torch.nn.functional.silu, _call_: false}\n"
      "  add_bias_linear: false\n  normalization: RMSNorm\n  position_embedding_type: rope\n  "
      "hidden_dropout: 0.0\n"
      "  attention_dropout: 0.0\n  share_embeddings_and_output_weights: false\n  seq_length: 2048\n"
      "  vocab_size: 1024\n  num_moe_experts: null\n  virtual_pipeline_model_parallel_size: 2\n"
      "  pipeline_model_parallel_size: 2\n  apply_rope_fusion: false\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["precision"], "fp8");
  EXPECT_EQ(plan["fp8_scaling"], "current");
  EXPECT_EQ(plan["vpp"], 2);
  EXPECT_FALSE(plan.contains("grad_reduce")) << "the precision's own field, fp32, wins over DDP's";
  EXPECT_EQ(plan["fused_rotary"], false);
  EXPECT_EQ(found.model["num_key_value_heads"], 2);
}

// Sections that counted as free of cost hold keys that change the step.
TEST(ImportYaml, NamesKeysOfSectionsThatAreNotFree) {
  const Imported bridge =
      read_launch("x.yaml",
                  "model: {tensor_model_parallel_size: 1}\ntrain: {micro_batch_size: 1}\n"
                  "dist: {use_sharp: true, distributed_backend: nccl}\nenv_vars: {NCCL_ALGO: Tree}\n");
  EXPECT_THAT(bridge.notes, AllOf(Contains(HasSubstr("--use-sharp is ignored")),
                                  Contains(HasSubstr("NCCL_ALGO is ignored: each collective"))));
  EXPECT_EQ(fate_of(bridge, "dist.distributed_backend"), "free");
  const Imported nemo = read_launch(
      "x.yaml",
      "trainer: {devices: 8}\nmodel:\n  micro_batch_size: 1\n  megatron_amp_O2: false\n  mcore_gpt: true\n"
      "  sharp: true\n  optim: {name: distributed_fused_adam, lr: 1, distribute_within_nodes: true}\n");
  EXPECT_THAT(nemo.notes, AllOf(Contains(HasSubstr("model.megatron_amp_O2 false is ignored")),
                                Contains(HasSubstr("model.sharp is ignored")),
                                Contains(HasSubstr("distribute_within_nodes is ignored"))));
  EXPECT_THAT(nemo.notes, Not(Contains(HasSubstr("mcore_gpt"))));
  EXPECT_EQ(fate_of(nemo, "model.optim.lr"), "free");
}

TEST(ImportYaml, CountsTheDefaultsOfPrimus) {
  const auto read = [](const std::string& more) {
    return read_launch("exp.yaml",
                       "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n"
                       "    overrides:\n      seq_length: 8192\n      micro_batch_size: 1\n" +
                           more);
  };
  const Imported found = read("");
  EXPECT_EQ(found.scenario["plan"]["precision"], "bf16");
  EXPECT_EQ(found.scenario["plan"]["zero"], 1);
  EXPECT_EQ(found.scenario["plan"]["seq"], 8192);
  EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("by default of pre_trainer.yaml"), HasSubstr("bf16 true"),
                                          Not(HasSubstr("seq_length")))));
  EXPECT_EQ(fate_of(found, "bf16 by default"), "absent");
  EXPECT_EQ(read("      use_distributed_optimizer: false\n").scenario["plan"].value("zero", 0), 0);
}

// In a time that grows with the keys, not with their square.
TEST(ImportYaml, ReadsThousandsOfKeys) {
  constexpr int kSections = 5'000;
  std::string yaml = "train: {micro_batch_size: 1, global_batch_size: 8}\nmodel: {num_layers: 2}\n";
  for (int i = 0; i < kSections; ++i) yaml += "s" + std::to_string(i) + ": {peft: 1, hidden_size: 8}\n";
  const Imported found = read_launch("run.yaml", yaml);
  EXPECT_EQ(found.options.size(), 2u * kSections + 3);
  EXPECT_EQ(fate_of(found, "s4999.peft"), "ignored");
  EXPECT_EQ(fate_of(found, "s4999.hidden_size"), "used");
}

TEST(ImportYaml, ReadsPrimusWithTheFileOfTheModel) {
  const std::string text =
      "modules:\n  pre_trainer:\n    framework: megatron\n    model: tiny.yaml\n    overrides:\n"
      "      seq_length: ${SEQ:2048}\n      micro_batch_size: 1\n      sequence_parallel: 1\n      "
      "use_turbo_attention: true\n";
  ImportRequest request;
  EXPECT_THAT(read_launch("exp.yaml", text).notes,
              Contains(AllOf(HasSubstr("tiny.yaml"), HasSubstr("--source"))));
  request.shell.files["tiny.yaml"] =
      "extends: [base.yaml]\nnum_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\n";
  request.shell.files["base.yaml"] = "max_position_embeddings: 512\nvocab_size: 256\n";
  request.shell.variables["SEQ"] = "512";
  const Imported found = read_launch("exp.yaml", text, request);
  EXPECT_EQ(found.scenario["plan"]["seq"], 512);
  EXPECT_EQ(found.scenario["plan"]["sequence_parallel"], true);
  EXPECT_EQ(found.model["num_hidden_layers"], 2);
  EXPECT_EQ(fate_of(found, "modules.pre_trainer.overrides.use_turbo_attention"), "ignored");
}

TEST(ImportYaml, ReadsFlagScaleAndFlatNames) {
  const std::string shape =
      "  num_layers: 4\n  hidden_size: 256\n  num_attention_heads: 4\n  max_position_embeddings: 512\n  "
      "swiglu: true\n"
      "  multiple_of: 256\n  vocab_size: 512\n";
  const Imported scale = read_launch(
      "train.yaml", "system:\n  tensor_model_parallel_size: 4\n  precision: {bf16: true}\nmodel:\n" + shape);
  EXPECT_EQ(scale.scenario["plan"]["tp"], 4);
  EXPECT_EQ(scale.scenario["plan"]["precision"], "bf16");
  EXPECT_EQ(scale.model["intermediate_size"], 768) << "two thirds of 1024, rounded up to 256";
  const Imported swift =
      read_launch("sft.yaml", "model: Qwen/Qwen2.5-7B\ntensor_model_parallel_size: 2\nmax_length: 8192\n");
  EXPECT_EQ(swift.scenario["plan"]["tp"], 2);
  EXPECT_EQ(swift.scenario["plan"]["seq"], 8192);
}

TEST(ImportAccelerate, ReadsFsdpDeepSpeedAndMegatron) {
  const Imported fsdp =
      read_launch("fsdp.yaml",
                  "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
                  "num_machines: 2\nnum_processes: 16\nfsdp_config:\n"
                  "  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_activation_checkpointing: true\n"
                  "  fsdp_own: 1\n");
  EXPECT_EQ(fsdp.scenario["gpus"], 16);
  EXPECT_EQ(fsdp.scenario["plan"]["framework"], "fsdp1") << "Accelerate's default version";
  EXPECT_EQ(
      read_launch("two.yaml", "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n")
          .scenario["plan"]["framework"],
      "fsdp");
  EXPECT_EQ(fsdp.scenario["plan"]["zero"], 3);
  EXPECT_EQ(fsdp.scenario["plan"]["zero_shard"], 8);
  EXPECT_EQ(fsdp.scenario["plan"]["recompute"], "full");
  EXPECT_EQ(fate_of(fsdp, "fsdp_config.fsdp_own"), "unknown");
  const Imported zero = read_launch(
      "ds.yaml",
      "distributed_type: DEEPSPEED\nmixed_precision: 'no'\nnum_processes: 8\ndeepspeed_config:\n  "
      "zero_stage: 2\n"
      "  gradient_accumulation_steps: 4\n  offload_optimizer_device: cpu\n  zero3_init_flag: false\n");
  EXPECT_EQ(zero.scenario["plan"]["zero"], 2);
  EXPECT_EQ(zero.scenario["plan"]["offload"], "optimizer");
  EXPECT_EQ(zero.scenario["plan"]["precision"], "fp32");
  EXPECT_EQ(zero.accumulation, 4);
  const Imported megatron = read_launch("mlm.yaml",
                                        "distributed_type: MEGATRON_LM\nmegatron_lm_config: "
                                        "{megatron_lm_tp_degree: 4, megatron_lm_pp_degree: 2}\n");
  EXPECT_EQ(megatron.scenario["plan"]["tp"], 4);
  EXPECT_THAT(refusal([] { read_launch("tpu.yaml", "distributed_type: XLA\n"); }),
              HasSubstr("is not supported"));
}

TEST(ImportTrainer, ReadsNanotron) {
  const Imported found =
      read_launch("config_tiny.yaml",
                  "general: {project: x}\nmodel:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 256\n"
                  "    intermediate_size: 1024\n    is_llama_config: true\n    num_attention_heads: 4\n    "
                  "num_hidden_layers: 2\n"
                  "    num_key_value_heads: 2\n    vocab_size: 512\n    tie_word_embeddings: true\n    "
                  "pad_token_id: null\n"
                  "optimizer: {zero_stage: 1, accumulate_grad_in_fp32: true}\n"
                  "parallelism: {dp: 4, tp: 2, pp: 2, pp_engine: afab, tp_mode: REDUCE_SCATTER, my_own: 1}\n"
                  "tokens: {micro_batch_size: 3, batch_accumulation_per_replica: 2, sequence_length: 1024, "
                  "train_steps: 5}\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(plan["framework"], "nanotron");
  EXPECT_EQ(plan["schedule"], "gpipe");
  EXPECT_EQ(plan["sequence_parallel"], true);
  EXPECT_EQ(plan["zero"], 1);
  EXPECT_EQ(plan["global_batch"], 24);
  EXPECT_EQ(found.model["model_type"], "llama");
  EXPECT_FALSE(found.model.contains("pad_token_id"));
  EXPECT_EQ(fate_of(found, "parallelism.my_own"), "unknown");
  EXPECT_EQ(fate_of(found, "general.project"), "free");
  EXPECT_THAT(
      refusal([] { read_launch("x.yaml", "parallelism: {tp: many}\ntokens: {micro_batch_size: 1}\n"); }),
      HasSubstr("line 1: parallelism.tp: must be an integer"));
}

TEST(ImportTrainer, ReadsTheModelsOfNanotron) {
  const auto read = [](const std::string& model) {
    return read_launch("config.yaml",
                       "model:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 256\n"
                       "    num_attention_heads: 4\n    num_hidden_layers: 2\n    vocab_size: 512\n" +
                           model +
                           "parallelism: {dp: 4, tp: 1, pp: 1}\n"
                           "tokens: {micro_batch_size: 1, sequence_length: 1024}\n");
  };
  const Imported dense =
      read("    intermediate_size: 1024\n    moe_config: null\n    _use_doc_masking: true\n    _own: 1\n");
  EXPECT_EQ(dense.model["model_type"], "llama") << "no experts";
  EXPECT_EQ(fate_of(dense, "model.model_config.hidden_size"), "used");
  EXPECT_EQ(fate_of(dense, "model.model_config._use_doc_masking"), "ignored");
  EXPECT_EQ(fate_of(dense, "model.model_config._own"), "unknown");
  const Imported starcoder =
      read("    is_starcoder2_config: true\n    grouped_query: true\n    num_kv_heads: 2\n");
  EXPECT_EQ(starcoder.model["model_type"], "starcoder2");
  EXPECT_EQ(starcoder.model["num_key_value_heads"], 2);
  EXPECT_EQ(starcoder.model["intermediate_size"], 1024);
  EXPECT_EQ(read("    is_starcoder2_config: true\n").model["num_key_value_heads"], 1);
}

TEST(ImportTrainer, ReadsWhatTheTrainerSays) {
  const std::string text =
      "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\nfinetuning_type: lora\ntemplate: llama3\n"
      "cutoff_len: 2048\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 8\nbf16: true\n"
      "deepspeed: examples/ds_z3.json\n";
  EXPECT_THAT(refusal([&] { read_launch("sft.yaml", text); }),
              AllOf(HasSubstr("line 9: deepspeed"), HasSubstr("--source examples/ds_z3.json")));
  ImportRequest request;
  request.shell.files["ds_z3.json"] = R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}})";
  const Imported found = read_launch("sft.yaml", text, request);
  EXPECT_EQ(found.scenario["plan"]["framework"], "deepspeed");
  EXPECT_EQ(found.scenario["plan"]["zero"], 3);
  EXPECT_EQ(found.scenario["plan"]["precision"], "bf16");
  EXPECT_EQ(found.scenario["plan"]["recompute"], "full") << "LLaMA-Factory's default";
  EXPECT_EQ(found.scenario["plan"]["seq"], 2048);
  EXPECT_EQ(found.accumulation, 8);
  EXPECT_THAT(found.notes, Contains(HasSubstr("finetuning_type lora is ignored")));
  EXPECT_THAT(refusal([] { read_launch("olmo.yaml", "max_duration: 100\n"); }), HasSubstr("OLMo"));
}

TEST(ImportTrainer, ReadsHowInputsAreRecomputedAndSharded) {
  const auto plan = [](const std::string& more) {
    return read_launch("x.yaml", "base_model: x\nmicro_batch_size: 1\nsequence_len: 2048\n" + more)
        .scenario["plan"];
  };
  EXPECT_EQ(plan("gradient_checkpointing: offload\n")["recompute"], "full")
      << "axolotl's other ways to do it";
  EXPECT_EQ(plan("gradient_checkpointing: false\n")["recompute"], "none");
  EXPECT_EQ(plan("fsdp: []\n")["zero"], 0);
  EXPECT_EQ(plan("fsdp: [full_shard]\nfsdp_config: {fsdp_reshard_after_forward: false}\n")["zero"], 2);
  EXPECT_EQ(plan("fsdp_config: {activation_checkpointing: true}\n")["recompute"], "full");
}

TEST(LaunchKinds, AreToldByWhatTheFileHolds) {
  const auto kind = [](const std::string& name, const std::string& text) {
    return std::string(detect_kind({name, text}).kind->name);
  };
  EXPECT_EQ(kind("train.sh", "train.py --num-layers 4"), "megatron");
  EXPECT_EQ(kind("train.log", "0: ------------------------ arguments ------------------------\n"),
            "megatron");
  EXPECT_EQ(kind("ds.json", R"({"train_batch_size": 8})"), "deepspeed");
  EXPECT_EQ(kind("llama3.toml", "[model]\nname = \"llama3\"\n"), "torchtitan");
  EXPECT_EQ(kind("fsdp.yaml", "distributed_type: FSDP\n"), "accelerate");
  EXPECT_EQ(kind("nemo.yaml", "trainer: {devices: 8}\nmodel: {micro_batch_size: 1}\n"), "nemo");
  EXPECT_THAT(refusal([] {
                detect_kind({"config.json", R"({"model_type": "llama"})"});
              }),
              AllOf(HasSubstr("Hugging Face"), HasSubstr("--model config.json")));
  EXPECT_THAT(refusal([] { detect_kind({"x.yaml", "a: 1\n"}); }), HasSubstr("of no supported framework"));
}

}  // namespace
}  // namespace rehearse
