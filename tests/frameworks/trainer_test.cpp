// Keys of trainers that earlier counted as free of cost, or that state more than the reader used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Imported axolotl(const std::string& more) {
  return read_launch("x.yaml", "base_model: x\nmicro_batch_size: 1\nsequence_len: 2048\n" + more);
}
Imported factory(const std::string& more) {
  return read_launch("x.yaml", "model_name_or_path: x\nfinetuning_type: full\nlearning_rate: 1e-5\n" + more);
}
Imported accelerate(const std::string& more, const SaidOverFile& over = {}) {
  ImportRequest request;
  request.over = over;
  return read_launch("x.yaml", "num_processes: 8\n" + more, request);
}

TEST(ImportTrainer, ReadsWordsOfFsdp) {
  const auto plan = [](const std::string& more) { return axolotl(more).scenario["plan"]; };
  EXPECT_EQ(plan("fsdp: shard_grad_op auto_wrap\n")["zero"], 2);
  EXPECT_EQ(plan("fsdp: [full_shard, offload]\n")["offload"], "optimizer");
  EXPECT_EQ(plan("fsdp_config: {fsdp_sharding_strategy: NO_SHARD}\n")["zero"], 0);
  EXPECT_EQ(plan("fsdp_config: {backward_prefetch: NO_PREFETCH}\n")["prefetch"], 0);
  EXPECT_THAT(axolotl("fsdp_config: {auto_wrap_policy: SIZE_BASED_WRAP}\n").notes,
              Contains(HasSubstr("auto_wrap_policy \"SIZE_BASED_WRAP\" is ignored")));
  EXPECT_EQ(plan("sequence_parallel_degree: 4\n")["cp"], 4);
}

TEST(ImportTrainer, CountsWhatTheNetworkAndItsPrecisionCost) {
  const Json plain = factory("bf16: true\n").scenario["plan"];
  EXPECT_EQ(plain["recipe"], "autocast") << "replicas under torch.autocast";
  EXPECT_EQ(plain["grad_reduce"], "fp32");
  EXPECT_EQ(plain["fused_norm"], false);
  EXPECT_EQ(plain["clip_grad"], 1) << "transformers' default";
  EXPECT_EQ(plain["recompute_early_stop"], false) << "reentrant";
  EXPECT_EQ(axolotl("bf16: true\n").scenario["plan"]["recipe"], "bf16") << "weights are loaded in bf16";
  EXPECT_FALSE(axolotl("bf16: true\nfsdp: [full_shard]\n").scenario["plan"].contains("recipe"));
  EXPECT_EQ(factory("max_grad_norm: 0.5\n").scenario["plan"]["clip_grad"], 0.5);
  EXPECT_EQ(factory("enable_liger_kernel: true\n").scenario["plan"]["fused_norm"], true);
  EXPECT_EQ(axolotl("liger_rope: true\n").scenario["plan"]["fused_rotary"], true);
  EXPECT_EQ(factory("flash_attn: disabled\n").scenario["plan"]["fused_attention"], false);
  EXPECT_EQ(factory("gradient_checkpointing_kwargs: {use_reentrant: false}\n")
                .scenario["plan"]["recompute_early_stop"],
            true);
}

TEST(ImportTrainer, NamesWhatItDoesNotCount) {
  EXPECT_THAT(factory("stage: dpo\n").notes, Contains(HasSubstr("stage dpo is ignored")));
  EXPECT_THAT(factory("stage: sft\n").notes, Not(Contains(HasSubstr("stage"))));
  EXPECT_THAT(axolotl("optimizer: adamw_bnb_8bit\n").notes, Contains(HasSubstr("moments in 8 bits")));
  EXPECT_THAT(axolotl("optimizer: adamw_torch_fused\n").notes, Not(Contains(HasSubstr("adamw"))));
  EXPECT_EQ(axolotl("optimizer: adamw_torch_fused\n").scenario["plan"]["fused_adam"], true);
  EXPECT_THAT(axolotl("bf16: false\ntf32: true\n").notes, Contains(HasSubstr("tf32 is approximated")));
  EXPECT_THAT(axolotl("load_in_4bit: true\n").notes, Contains(HasSubstr("load_in_4bit true is ignored")));
  EXPECT_THAT(axolotl("liger_layer_norm: true\n").notes,
              Contains(HasSubstr("liger_layer_norm true is ignored")));
  EXPECT_THAT(axolotl("resize_token_embeddings_to_32x: true\n").notes,
              Contains(HasSubstr("the vocabulary of --model is counted")));
  EXPECT_THAT(axolotl("").notes, Contains(HasSubstr("at their full length")));
  EXPECT_THAT(axolotl("pad_to_sequence_len: true\n").notes, Not(Contains(HasSubstr("at their full length"))));
}

TEST(ImportTrainer, ReadsWhichPartsOfAVisionModelAreTrained) {
  const auto frozen = [](const Imported& found) {
    const Json& plan = found.scenario["plan"];
    return std::pair(plan.value("freeze_tower", false), plan.value("freeze_projector", false));
  };
  EXPECT_EQ(frozen(factory("")), std::pair(true, true)) << "LLaMA-Factory's defaults";
  EXPECT_EQ(frozen(factory("freeze_vision_tower: false\n")), std::pair(false, true));
  EXPECT_EQ(frozen(factory("freeze_multi_modal_projector: false\n")), std::pair(true, false));
  EXPECT_EQ(frozen(axolotl("")), std::pair(false, false));
  EXPECT_EQ(frozen(axolotl("freeze_mm_modules: true\n")), std::pair(true, true));
  EXPECT_THAT(factory("freeze_language_model: true\n").notes,
              Contains(HasSubstr("the language model is counted as trained")));
}

TEST(ImportAccelerate, AsksForNothingThatIsGiven) {
  EXPECT_THAT(accelerate("distributed_type: FSDP\n").notes, Contains(HasSubstr("pass --mbs, --gbs, --seq")));
  EXPECT_THAT(accelerate("distributed_type: FSDP\n", {{"/plan/micro_batch", "1"}}).notes,
              Contains(HasSubstr("pass --gbs, --seq")));
  EXPECT_THAT(accelerate("distributed_type: FSDP\n",
                         {{"/plan/micro_batch", "1"}, {"/plan/global_batch", "8"}, {"/plan/seq", "64"}})
                  .notes,
              Not(Contains(HasSubstr("pass --"))));
}

TEST(ImportAccelerate, CountsReplicasUnderAutocast) {
  const Json plan = accelerate("distributed_type: MULTI_GPU\nmixed_precision: bf16\n").scenario["plan"];
  EXPECT_EQ(plan["recipe"], "autocast");
  EXPECT_EQ(plan["grad_reduce"], "fp32");
  const Imported wrapped = accelerate(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n"
      "  fsdp_min_num_params: 100000000\n  fsdp_backward_prefetch: BACKWARD_POST\n  fsdp_limit_all_gathers: "
      "false\n");
  EXPECT_THAT(wrapped.notes, AllOf(Contains(HasSubstr("SIZE_BASED_WRAP is ignored")),
                                   Contains(HasSubstr("fsdp_min_num_params 100000000 is ignored")),
                                   Contains(HasSubstr("BACKWARD_POST is approximated")),
                                   Contains(HasSubstr("fsdp_limit_all_gathers FALSE is ignored"))));
}

TEST(ImportNanotron, ReadsClippingBucketsAndPadding) {
  const Imported found =
      read_launch("nano.yaml",
                  "parallelism: {dp: 2, tp: 4, pp: 1, tp_recompute_allgather: false}\n"
                  "tokens: {micro_batch_size: 1, sequence_length: 64, batch_accumulation_per_replica: 1}\n"
                  "optimizer: {clip_grad: 0.5, zero_stage: 0, optimizer_factory: {name: adamW, "
                  "torch_adam_is_fused: true}}\n"
                  "model:\n  ddp_bucket_cap_mb: 10\n  make_vocab_size_divisible_by: 8\n"
                  "  model_config: {vocab_size: 1001, hidden_size: 64}\n");
  EXPECT_EQ(found.scenario["plan"]["clip_grad"], 0.5);
  EXPECT_EQ(found.scenario["plan"]["bucket"], "10485760B");
  EXPECT_EQ(found.scenario["plan"]["fused_adam"], true);
  EXPECT_EQ(found.model["vocab_size"], 1024);
  EXPECT_THAT(found.notes, Contains(HasSubstr("tp_recompute_allgather false is ignored")));
}

TEST(ImportNanotron, NamesTheKeyOfAMambaAndTheWayOn) {
  const std::string mamba =
      "parallelism: {dp: 8, tp: 1, pp: 1}\ntokens: {micro_batch_size: 1, sequence_length: 64}\n"
      "model:\n  model_config:\n    d_model: 1536\n    is_mamba_config: true\n    num_hidden_layers: 48\n";
  EXPECT_THAT(refusal([&] { read_launch("mamba.yaml", mamba); }),
              AllOf(HasSubstr("mamba.yaml: line 6: model.model_config.is_mamba_config"),
                    HasSubstr("d_model = 1536"), HasSubstr("--model config.json")));
  ImportRequest request;
  request.over["/model"] = "falcon-mamba.json";
  EXPECT_EQ(refusal([&] { read_launch("mamba.yaml", mamba, request); }), "no error");
}

TEST(ImportDeepSpeed, NamesKeysWhoseUsualValueIsOn) {
  const auto notes = [](const std::string& zero) {
    return read_launch("ds.json",
                       "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 2, " + zero + "}}")
        .notes;
  };
  EXPECT_THAT(notes("\"reduce_scatter\": false"),
              Contains(HasSubstr("zero_optimization/reduce_scatter\" is ignored")));
  EXPECT_THAT(notes("\"reduce_scatter\": true"), Not(Contains(HasSubstr("reduce_scatter"))));
  EXPECT_THAT(notes("\"contiguous_gradients\": false"), Contains(HasSubstr("contiguous_gradients")));
}

TEST(ImportTorchtitan, CountsReplicasAndNamesWhatChangesTheStep) {
  const auto read = [](const std::string& text) {
    ImportRequest request;
    request.gpus = 8;
    return read_launch("x.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + text, request);
  };
  const std::string replicas =
      "[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = ";
  EXPECT_EQ(read(replicas + "8\n").scenario["plan"]["recipe"], "autocast");
  const Imported split = read(replicas + "1\ntensor_parallel_degree = 8\n");
  EXPECT_EQ(split.scenario["plan"]["precision"], "fp32");
  EXPECT_THAT(split.notes, Contains(HasSubstr("trains in fp32")));
  EXPECT_EQ(read("[activation_checkpoint]\nmode = \"full\"\nearly_stop = false\n")
                .scenario["plan"]["recompute_early_stop"],
            false);
  EXPECT_THAT(read("[debug]\ndeterministic = true\nseed = 1\n").notes,
              Contains(HasSubstr("\"debug/deterministic\" is ignored")));
  EXPECT_THAT(read("[comm]\nmode = \"fake_backend\"\ntrace_buf_size = 1\n").notes,
              Contains(HasSubstr("\"comm/mode\" is ignored")));
  EXPECT_THAT(read("converters = [\"mx\"]\n[mx]\nrecipe_name = \"mxfp8_emulated\"\n").notes,
              Contains(HasSubstr("\"mx/recipe_name\" is ignored")));
  EXPECT_THAT(read("[float8]\nemulate = true\n").notes, Contains(HasSubstr("\"float8/emulate\" is ignored")));
  EXPECT_EQ(
      read("[experimental]\npipeline_parallel_degree = 2\npipeline_parallel_microbatches = 4\n[training]\n"
           "batch_size = 16\n")
          .scenario["plan"]["micro_batch"],
      4);
}

TEST(ImportTrainer, ReadsInWhichTypeTrlLoadsWeights) {
  const std::string trl = "model_name_or_path: x\nper_device_train_batch_size: 2\nmax_length: 4096\n";
  const auto read = [&](const std::string& more, const SaidOverFile& over = {}) {
    ImportRequest request;
    request.over = over;
    return read_launch("config.yaml", trl + more, request);
  };
  const auto plan = [&](const std::string& more) { return read(more).scenario["plan"]; };
  EXPECT_EQ(plan("bf16: true\n")["recipe"], "autocast");
  EXPECT_EQ(plan("bf16: true\ntorch_dtype: bfloat16\n")["recipe"], "bf16");
  EXPECT_EQ(plan("bf16: true\ndtype: float32\n")["recipe"], "autocast");
  EXPECT_EQ(plan("dtype: bfloat16\n")["precision"], "bf16");
  EXPECT_FALSE(plan("bf16: true\ntorch_dtype: bfloat16\nfsdp: full_shard\n").contains("recipe"))
      << "accelerate widens what it shards";
  EXPECT_FALSE(
      read("bf16: true\ndtype: bfloat16\n", {{"/plan/zero", "3"}}).scenario["plan"].value("recipe", "") ==
      "bf16");
  EXPECT_THAT(read("bf16: true\ndtype: auto\nbeta: 0.1\n").notes,
              AllOf(Contains(HasSubstr("dtype auto is approximated")),
                    Contains(HasSubstr("beta 0.1 is ignored")), Contains(HasSubstr("states no sharding"))));
  EXPECT_THAT(read("fsdp: full_shard\n").notes, Not(Contains(HasSubstr("states no sharding"))));
}

TEST(ImportTrainer, CountsTheProgramsLengthWhereNoneIsGiven) {
  const auto seq = [](const std::string& yaml) {
    return read_launch("t.yaml", yaml).scenario["plan"]["seq"];
  };
  EXPECT_EQ(seq("base_model: x\nmicro_batch_size: 1\n"), 512);
  EXPECT_EQ(seq("model_name_or_path: x\ntemplate: llama3\nlearning_rate: 1e-5\n"), 2048);
  EXPECT_EQ(seq("model_name_or_path: x\nlearning_rate: 1e-5\n"), 1024);
  EXPECT_THAT(read_launch("t.yaml", "base_model: x\nmicro_batch_size: 1\n").notes,
              Contains(HasSubstr("512 is counted")));
}

}  // namespace
}  // namespace rehearse
