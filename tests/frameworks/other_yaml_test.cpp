// YAML of llm-foundry, MaxText and verl, and scripts that start verl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(ImportLlmFoundry, ReadsMptWithFsdp) {
  const Imported found = read_launch(
      "mpt.yaml",
      "variables: {seq: 2048}\nmax_seq_len: ${variables.seq}\nmodel:\n  name: mpt_causal_lm\n  d_model: 256\n"
      "  n_heads: 4\n  n_layers: 3\n  expansion_ratio: 4\n  max_seq_len: 2048\n  vocab_size: 512\n"
      "  no_bias: true\n  attn_config: {alibi: true}\ntrain_loader: {name: text}\n"
      "optimizer: {name: decoupled_lionw}\nalgorithms: {gradient_clipping: {clipping_threshold: 0.5}}\n"
      "global_train_batch_size: 64\ndevice_train_microbatch_size: 4\nprecision: amp_bf16\n"
      "fsdp_config: {sharding_strategy: SHARD_GRAD_OP, mixed_precision: PURE, activation_checkpointing: "
      "true}\n"
      "my_own: 1\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["framework"], "fsdp1");
  EXPECT_EQ(plan["zero"], 2);
  EXPECT_EQ(plan["grad_reduce"], "bf16");
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_EQ(plan["micro_batch"], 4);
  EXPECT_EQ(plan["global_batch"], 64);
  EXPECT_EQ(plan["clip_grad"], 0.5);
  EXPECT_EQ(plan["seq"], 2048);
  EXPECT_EQ(found.model["intermediate_size"], 1024);
  EXPECT_EQ(found.model["position_embedding_type"], "alibi");
  EXPECT_EQ(found.model["mlp_bias"], false);
  EXPECT_THAT(found.notes, Contains(HasSubstr("decoupled_lionw")));
  EXPECT_EQ(fate_of(found, "my_own"), "unknown");
}

TEST(ImportMaxText, ReadsMeshesAndTheNetwork) {
  const std::string text =
      "base_config: base.yml\nhardware: gpu\nici_fsdp_parallelism: 8\ndcn_data_parallelism: 2\n"
      "per_device_batch_size: 2\nmax_target_length: 4096\nremat_policy: minimal\nbase_emb_dim: 256\n"
      "base_num_query_heads: 4\nbase_num_kv_heads: 2\nhead_dim: 64\nbase_mlp_dim: 1024\n"
      "base_num_decoder_layers: 3\nvocab_size: 512\nmlp_activations: [gelu]\nattention: dot_product\n"
      "weight_dtype: bfloat16\nenable_dropout: false\ndropout_rate: 0.1\n";
  const Imported found = read_launch("gpu.yml", text);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_EQ(plan["zero_shard"], 8);
  EXPECT_EQ(plan["global_batch"], 32);
  EXPECT_EQ(plan["recompute"], "selective");
  EXPECT_EQ(found.model["num_hidden_layers"], 3);
  EXPECT_EQ(plan["fused_attention"], false);
  EXPECT_EQ(found.model["activation"], "gelu");
  EXPECT_EQ(found.model["hidden_dropout"], 0);
  EXPECT_THAT(found.notes, Contains(HasSubstr("weight_dtype \"bfloat16\" is ignored: parameters")));
  EXPECT_THAT(found.notes, Contains(HasSubstr("remat_policy minimal is approximated")));
}

TEST(ImportVerl, ReadsTheUpdateOfTheActorFromWordsOfAScript) {
  const std::string script =
      "NODES=2\npython3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=megatron \\\n"
      "  actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.actor.ppo_mini_batch_size=64 \\\n"
      "  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.n=8 \\\n"
      "  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 data.max_prompt_length=1024 \\\n"
      "  +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=selective \\\n"
      "  data.max_response_length=3072 trainer.n_gpus_per_node=8 trainer.nnodes=$NODES optim=fsdp "
      "optim.lr=1e-6\n";
  const Imported found = read_launch("ppo.sh", script);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(plan["framework"], "megatron-core");
  EXPECT_EQ(plan["tp"], 4);
  EXPECT_EQ(plan["seq"], 4096);
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["global_batch"], 512) << "64 prompts of 8 samples";
  EXPECT_EQ(plan["recompute"], "selective");
  EXPECT_THAT(found.notes, Contains(HasSubstr("generation, reference, critic and reward are not")));
  const std::string open =
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=fsdp trainer.nnodes=$N";
  EXPECT_THAT(refusal([&] { read_launch("ppo.sh", open); }), HasSubstr("rehearse import ppo.sh N=VALUE"));
  ImportRequest request;
  request.gpus = 8;
  request.over["/gpus"] = "8";
  EXPECT_EQ(read_launch("ppo.sh", open, request).scenario["gpus"], 8);
  const auto engine = [&](const std::string& words) {
    return read_launch("ppo.sh",
                       "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=" + words);
  };
  const std::string config = " actor_rollout_ref.actor.fsdp_config.";
  const Imported second = engine("fsdp2" + config + "model_dtype=bf16" + config + "dtype=float16");
  EXPECT_EQ(second.scenario["plan"]["framework"], "fsdp");
  EXPECT_EQ(second.scenario["plan"]["precision"], "fp16");
  EXPECT_THAT(second.notes, Contains(HasSubstr("model_dtype \"bf16\" is ignored: shards")));
  EXPECT_EQ(engine("fsdp").scenario["plan"]["framework"], "fsdp1");
}

// --- Details of the programs' sources ---

std::string mpt(const std::string& of_model, const std::string& others = "") {
  return "max_seq_len: 2048\nmodel:\n  name: mpt_causal_lm\n  d_model: 256\n  n_heads: 4\n" + of_model +
         "train_loader: {name: text}\nglobal_train_batch_size: 64\n" + others;
}

TEST(ImportLlmFoundry, ReadsWhatMptRuns) {
  const Imported found = read_launch(
      "mpt.yaml", mpt("  expansion_ratio: 2.5\n  head_dim: 32\n  attention_bias: true\n"
                      "  no_bias: true\n  loss_fn: torch_crossentropy\n"
                      "  attn_config: {attn_impl: torch, sliding_window_size: -1, clip_qkv: 8}\n"));
  EXPECT_EQ(found.model["intermediate_size"], 640);
  EXPECT_EQ(found.model["head_dim"], 32);
  EXPECT_EQ(found.model["qkv_bias"], true) << "over no_bias";
  EXPECT_FALSE(found.model.contains("sliding_window"));
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["fused_attention"], false);
  EXPECT_EQ(plan["fused_cross_entropy"], false);
  EXPECT_EQ(plan["train_metrics"], 3);
  EXPECT_THAT(found.notes, Contains(HasSubstr("attn_config.clip_qkv 8 is ignored")));
  EXPECT_THAT(found.notes,
              Contains(HasSubstr("device_train_microbatch_size is not given, which means auto")));
}

TEST(ImportLlmFoundry, CountsGradientsAsComposerReducesThem) {
  const auto plan = [](const std::string& others) {
    return read_launch("mpt.yaml", mpt("  n_layers: 2\n", others)).scenario["plan"];
  };
  EXPECT_EQ(plan("")["recipe"], "autocast") << "DistributedDataParallel";
  EXPECT_EQ(plan("")["grad_reduce"], "fp32");
  EXPECT_EQ(plan("fsdp_config: {mixed_precision: DEFAULT}\n")["grad_reduce"], "fp32");
  EXPECT_EQ(plan("fsdp_config: {mixed_precision: PURE}\n")["grad_reduce"], "bf16");
  EXPECT_EQ(plan("fsdp_config: {mixed_precision: FULL}\n")["precision"], "bf16") << "torch.autocast narrows";
  EXPECT_EQ(plan("fsdp_config: {mixed_precision: {param_dtype: bf16, reduce_dtype: bf16}}\n")["grad_reduce"],
            "bf16");
  EXPECT_EQ(plan("fsdp_config: {activation_checkpointing: true}\n")["recompute_early_stop"], false)
      << "Composer's default is reentrant";
  EXPECT_EQ(plan("fsdp_config: {data_parallel_shard_degree: 8}\n")["zero_shard"], 8);
  EXPECT_EQ(plan("precision: amp_fp8\n")["precision"], "bf16") << "only layers of Transformer Engine narrow";
  ImportRequest request;
  request.gpus = 32;
  EXPECT_EQ(read_launch("mpt.yaml", mpt("", "device_train_microbatch_size: 8\n"), request)
                .scenario["plan"]["micro_batch"],
            2)
      << "no more than a GPU's part";
  EXPECT_THAT(read_launch("mpt.yaml", mpt("", "fsdp_config: {limit_all_gathers: false}\n")).notes,
              AllOf(Contains(HasSubstr("limit_all_gathers false is ignored")),
                    Contains(HasSubstr("BACKWARD_POST, Composer's default"))));
}

TEST(ImportLlmFoundry, NamesAnotherClipping) {
  EXPECT_THAT(read_launch("x.yaml",
                          "model: {name: mpt_causal_lm}\ntrain_loader: {name: text}\nalgorithms:\n"
                          "  gradient_clipping: {clipping_type: adaptive, clipping_threshold: 0.1}\n")
                  .notes,
              Contains(HasSubstr("clipping_type \"adaptive\" is ignored")));
}

TEST(ImportLlmFoundry, ReadsTheParametersOfAJob) {
  const Imported found =
      read_launch("job.yaml",
                  "name: mpt\ncompute: {gpus: 16}\nparameters:\n  seq: 1024\n  max_seq_len: ${seq}\n"
                  "  model: {name: mpt_causal_lm, d_model: 128, n_heads: 2}\n  train_loader: {name: text}\n"
                  "  global_train_batch_size: 32\n  device_train_microbatch_size: 1\n");
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(found.scenario["plan"]["seq"], 1024);
}

TEST(ImportMaxText, ReadsPipelinesContextsAndReplicas) {
  const auto read = [](const std::string& more, int gpus = 32) {
    ImportRequest request;
    request.gpus = gpus;
    return read_launch(
        "gpu.yml", "base_config: base.yml\nhardware: gpu\nbase_emb_dim: 256\nhead_dim: 64\n" + more, request);
  };
  const Json pipeline =
      read(
          "ici_pipeline_parallelism: 4\ndcn_data_parallelism: 1\nbase_num_decoder_layers: 8\n"
          "per_device_batch_size: 2\n")
          .scenario["plan"];
  EXPECT_EQ(pipeline["micro_batch"], 2) << "eight sequences of four stages, in four microbatches";
  EXPECT_EQ(pipeline["vpp"], 2);
  EXPECT_EQ(read("ici_context_parallelism: 2\n").scenario["plan"]["cp_comm_type"], "allgather");
  EXPECT_EQ(
      read("ici_context_parallelism: 2\ncontext_parallel_strategy: ring\n").scenario["plan"]["cp_comm_type"],
      "p2p");
  EXPECT_EQ(read("ici_context_parallelism: 2\nici_fsdp_parallelism: 4\ndcn_data_parallelism: 4\n")
                .scenario["plan"]["zero_shard"],
            8)
      << "weights are split over the context axis too";
  EXPECT_THAT(read("").notes, Contains(HasSubstr("across JAX's slices")));
  EXPECT_THAT(read("dcn_data_parallelism: 2\n").notes, Not(Contains(HasSubstr("slices"))));
  EXPECT_EQ(read("optimizer_memory_host_offload: true\n").scenario["plan"]["offload"], "optimizer");
  EXPECT_THAT(read("use_iota_embed: true\n").notes, Contains(HasSubstr("use_iota_embed true is ignored")));
  EXPECT_TRUE(read("attention_type: mla\n").model.is_null());
  EXPECT_EQ(read("ici_fsdp_parallelism: 1\nici_expert_parallelism: 8\n").scenario["plan"]["zero"], 3)
      << "weights are split over the expert axis";
}

std::string ppo(const std::string& words) {
  return "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=" + words + "\n";
}

TEST(ImportVerl, CountsTheUpdateAsItsWorkersRunIt) {
  const std::string of_actor = " actor_rollout_ref.actor.", engine = of_actor + "fsdp_config.";
  const Imported found =
      read_launch("ppo.sh", ppo("fsdp" + engine + "param_offload=True" + engine + "optimizer_offload=True" +
                                of_actor + "entropy_coeff=0.001 actor_rollout_ref.model.lora_rank=32" +
                                of_actor + "optim.optimizer=AdamW8bit"));
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["grad_reduce"], "fp32");
  EXPECT_EQ(plan["fused_adam"], false);
  EXPECT_FALSE(plan.contains("offload")) << "state is brought back before the update";
  EXPECT_THAT(found.notes,
              AllOf(Contains(HasSubstr("optimizer_offload is ignored: state lies on the GPU")),
                    Contains(HasSubstr("entropy_coeff 0.001 is ignored")),
                    Contains(HasSubstr("lora_rank 32 is ignored")), Contains(HasSubstr("AdamW8bit"))));
  EXPECT_EQ(read_launch("ppo.sh", ppo("fsdp2" + engine + "offload_policy=True")).scenario["plan"]["offload"],
            "optimizer");
  const Imported dynamic =
      read_launch("ppo.sh", ppo("fsdp" + of_actor + "use_dynamic_bsz=True" + of_actor +
                                "ppo_max_token_len_per_gpu=16384" + of_actor +
                                "ppo_micro_batch_size_per_gpu=1 data.max_prompt_length=2048 "
                                "data.max_response_length=2048"));
  EXPECT_EQ(dynamic.scenario["plan"]["micro_batch"], 4) << "as many as the tokens allow";
  EXPECT_THAT(refusal([&] { read_launch("ppo.sh", ppo("veomni")); }), HasSubstr("found veomni"));
}

TEST(ImportVerl, ReadsTheMegatronEngine) {
  const std::string before = " +actor_rollout_ref.actor.";
  const Imported found =
      read_launch("ppo.sh",
                  "python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' "
                  "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=4" +
                      before + "megatron.override_transformer_config.num_layers_in_last_pipeline_stage=6" +
                      before + "megatron.override_transformer_config.recompute_granularity=selective" +
                      before + "megatron.override_transformer_config.recompute_modules=[core_attn,mlp]" +
                      before + "optim.override_optimizer_config.optimizer_cpu_offload=True" + before +
                      "megatron.override_ddp_config.overlap_grad_reduce=True\n");
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["framework"], "megatron-core") << "by the name of its settings";
  EXPECT_EQ(plan["last_rank_layers"], 6);
  EXPECT_EQ(plan["recompute_modules"], "core_attn,mlp");
  EXPECT_EQ(plan["offload"], "optimizer");
  EXPECT_EQ(plan["overlap_grad_reduce"], true);
}

// Keys of the network that the reader once listed as read without using them.
TEST(ImportVerl, CountsTheDispatcherAndTheAttentionOfTheNetwork) {
  const auto read = [](const std::string& words) {
    return read_launch("ppo.sh",
                       "python3 -m verl.trainer.main_ppo --config-name=ppo_megatron_trainer "
                       "+actor_rollout_ref.actor.megatron.override_transformer_config." +
                           words + "\n");
  };
  EXPECT_EQ(read("moe_token_dispatcher_type=flex").scenario["plan"]["moe_dispatcher"], "deepep");
  EXPECT_THAT(read("moe_token_dispatcher_type=allgather").notes,
              Contains(HasSubstr("moe_token_dispatcher_type allgather is approximated")));
  EXPECT_EQ(read("attention_backend=unfused").scenario["plan"]["fused_attention"], false);
  EXPECT_THAT(read_launch("sft.sh",
                          "torchrun --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer "
                          "model.fsdp_config.offload_params=True\n")
                  .notes,
              Contains(HasSubstr("model.fsdp_config.offload_params")));
}

// One table holds PyTorch's arguments for all programs that have FSDP.
TEST(ImportFsdp, ReadsItsArgumentsAlikeInEveryProgram) {
  const std::string effect = "gathers of the forward pass begin as PyTorch's do by default";
  const std::vector<Imported> all = {
      read_launch("x.yaml",
                  "model: {name: mpt_causal_lm}\ntrain_loader: {name: text}\n"
                  "fsdp_config: {forward_prefetch: true, use_orig_params: true}\n"),
      read_launch("x.yaml",
                  "base_model: x/y\nmicro_batch_size: 1\n"
                  "fsdp_config: {forward_prefetch: true, use_orig_params: true}\n"),
      read_launch("x.yaml",
                  "distributed_type: FSDP\nnum_processes: 8\n"
                  "fsdp_config: {fsdp_forward_prefetch: true, fsdp_use_orig_params: true}\n"),
      read_launch("ppo.sh",
                  "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=fsdp "
                  "actor_rollout_ref.actor.fsdp_config.forward_prefetch=True "
                  "actor_rollout_ref.actor.fsdp_config.use_orig_params=True\n")};
  for (const Imported& found : all) {
    EXPECT_THAT(found.notes, Contains(HasSubstr(effect)));
    int free = 0;
    for (const ImportedOption& option : found.options)
      if (option.name.ends_with("use_orig_params") && option.fate == OptionFate::free) ++free;
    EXPECT_EQ(free, 1);
  }
}

TEST(ImportVerl, ReadsOneDecidedCommand) {
  const std::string settings =
      "python3 -m verl.trainer.main_ppo --config-name=mine data.max_prompt_length=8\n";
  EXPECT_THAT(read_launch("ppo.sh", settings).notes,
              Contains(AllOf(HasSubstr("--config-name mine is not read"), HasSubstr("--source mine.yaml"))));
  ImportRequest request;
  request.shell.files["mine.yaml"] =
      "data: {max_response_length: 24}\nactor_rollout_ref: {actor: {strategy: fsdp2}}\n";
  const Json plan = read_launch("ppo.sh", settings, request).scenario["plan"];
  EXPECT_EQ(plan["seq"], 32);
  EXPECT_EQ(plan["framework"], "fsdp");
  EXPECT_THAT(refusal([&] { read_launch("ppo.sh", ppo("fsdp") + ppo("fsdp2")); }),
              HasSubstr("second training command"));
  EXPECT_THAT(
      refusal([&] { read_launch("ppo.sh", "if [ $X = 1 ]; then A=fsdp; else A=fsdp2; fi\n" + ppo("$A")); }),
      HasSubstr("X=VALUE"));
  EXPECT_THAT(
      refusal([&] { read_launch("gen.sh", "python3 -m verl.trainer.main_generation trainer.nnodes=1\n"); }),
      HasSubstr("no command that starts a trainer"));
  const Imported sft =
      read_launch("sft.sh",
                  "torchrun --nnodes=2 --nproc_per_node=4 -m verl.trainer.fsdp_sft_trainer "
                  "data.micro_batch_size_per_gpu=2 data.train_batch_size=64 model.partial_pretrain=x\n");
  EXPECT_EQ(sft.scenario["gpus"], 8);
  EXPECT_EQ(sft.scenario["plan"]["framework"], "fsdp");
  EXPECT_THAT(sft.notes, Contains(HasSubstr("model.strategy is not given")));
}

TEST(ImportVerl, ReadsYamlWhoseTextNamesItsKeys) {
  const std::string yaml =
      "# actor_rollout_ref.actor.strategy decides\nactor_rollout_ref:\n  actor:\n    strategy: fsdp\n";
  EXPECT_THAT(refusal([&] { read_launch("ppo_trainer.yaml", yaml); }),
              testing::Not(HasSubstr("no command that starts")));
}

}  // namespace
}  // namespace rehearse
