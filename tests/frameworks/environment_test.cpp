// Environment variables of launch files: named with their effect, wherever the file sets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/environment.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::string kTrain = "torchrun --nproc-per-node 8 pretrain_gpt.py " + kShape + "--vocab-size 512\n";

// The fate, the value and the place of a variable; "" where the import lists none.
std::string listed(const Imported& found, const std::string& name) {
  for (const ImportedOption& each : found.options)
    if (each.name == name) return std::string(to_string(each.fate)) + " " + each.value + " " + each.place;
  return "";
}

TEST(Environment, IsReadWhereverAScriptSetsIt) {
  const std::string p2p = "over NVLink or PCIe";
  for (const std::string& script : std::vector<std::string>{
           "export NCCL_P2P_DISABLE=1\n" + kTrain, "NCCL_P2P_DISABLE=1 " + kTrain,
           "env NCCL_P2P_DISABLE=1 " + kTrain, "mpirun -x NCCL_P2P_DISABLE=1 " + kTrain,
           "docker run --env=NCCL_P2P_DISABLE=1 image " + kTrain,
           "srun --export=ALL,NCCL_P2P_DISABLE=1 " + kTrain,
           "bash -c 'export NCCL_P2P_DISABLE=1; " + kTrain.substr(0, kTrain.size() - 1) + "'\n",
           "ray job submit --runtime-env-json='{\"env_vars\": {\"NCCL_P2P_DISABLE\": 1}}' -- " + kTrain}) {
    const Imported found = megatron(script);
    EXPECT_THAT(found.notes, Contains(AllOf(HasSubstr("NCCL_P2P_DISABLE is ignored"), HasSubstr(p2p))))
        << script;
    EXPECT_EQ(listed(found, "NCCL_P2P_DISABLE"), "ignored 1 line 1") << script;
  }
}

TEST(Environment, IsThatOfTheTrainingCommand) {
  EXPECT_THAT(megatron("NCCL_P2P_DISABLE=1 python preprocess.py\n" + kTrain).notes,
              Not(Contains(HasSubstr("NCCL_P2P_DISABLE"))));
  EXPECT_EQ(listed(megatron("export NCCL_IB_DISABLE=1\nunset NCCL_IB_DISABLE\n" + kTrain), "NCCL_IB_DISABLE"),
            "");
  EXPECT_EQ(listed(megatron("export NCCL_IB_DISABLE=${OFF:-1}\n" + kTrain), "NCCL_IB_DISABLE"),
            "ignored 1 line 1");
}

TEST(Environment, IsFreeOrCountedWhereItChangesNothing) {
  const Imported found = megatron(
      "export NCCL_DEBUG=INFO NCCL_IB_DISABLE=0 CUDA_DEVICE_MAX_CONNECTIONS=1 MY_NCCL=1 WANDB_MODE=offline\n"
      "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true\n" +
      kTrain);
  EXPECT_EQ(listed(found, "NCCL_DEBUG"), "free INFO line 1");
  EXPECT_EQ(listed(found, "CUDA_DEVICE_MAX_CONNECTIONS"), "free 1 line 1");
  EXPECT_EQ(listed(found, "NCCL_IB_DISABLE"), "used 0 line 1");
  EXPECT_EQ(listed(found, "PYTORCH_CUDA_ALLOC_CONF"), "used expandable_segments:true line 2");
  EXPECT_EQ(listed(found, "MY_NCCL") + listed(found, "WANDB_MODE"), "") << "of the script";
}

TEST(Environment, OfOneEffectHasOneNote) {
  const Imported found = megatron("export NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_NEW_SWITCH=1\n" + kTrain);
  EXPECT_THAT(found.notes, Contains(HasSubstr("NCCL_ALGO, NCCL_PROTO are ignored")));
  EXPECT_THAT(found.notes,
              Contains(HasSubstr("NCCL_NEW_SWITCH is ignored: NCCL is counted at its defaults")));
}

TEST(Environment, CanLeaveAttentionUnfused) {
  const std::string off = "export NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=0\n";
  const Imported found = megatron(off + kTrain);
  EXPECT_EQ(found.scenario["plan"]["fused_attention"], false);
  EXPECT_EQ(listed(found, "NVTE_FLASH_ATTN"), "used 0 line 1");
  EXPECT_FALSE(megatron("export NVTE_FLASH_ATTN=0\n" + kTrain).scenario["plan"].contains("fused_attention"));
  const std::string said = kTrain.substr(0, kTrain.size() - 1) + " --attention-backend flash\n";
  EXPECT_FALSE(megatron(off + said).scenario["plan"].contains("fused_attention"));
}

TEST(Environment, IsReadFromYaml) {
  for (const auto& [name, text] :
       {std::pair{"model_config.yaml",
                  "ENV_VARS:\n  NCCL_ALGO: Ring\nMODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n"
                  "  --num-attention-heads: 4\n  --seq-length: 128\n  --vocab-size: 512\n"},
        {"recipe.yaml",
         "model: {tensor_model_parallel_size: 2, num_layers: 2}\ntrain: {micro_batch_size: 1}\n"
         "ddp: {use_distributed_optimizer: true}\nenv_vars:\n  NCCL_ALGO: Ring\n  MINE: 1\n"},
        {"verl.yaml",
         "actor_rollout_ref: {actor: {strategy: fsdp}}\nray_kwargs: {ray_init: {runtime_env: "
         "{env_vars: {NCCL_ALGO: Ring, MINE: 1}}}}\n"}}) {
    const Imported found = read_launch(name, text);
    EXPECT_THAT(found.notes, Contains(HasSubstr("NCCL_ALGO is ignored"))) << name;
    EXPECT_THAT(listed(found, "NCCL_ALGO"), HasSubstr("ignored Ring line")) << name;
  }
}

TEST(Environment, OfAScriptThatStartsVerlIsRead) {
  EXPECT_THAT(read_launch("run.sh",
                          "export NCCL_IB_DISABLE=1\npython3 -m verl.trainer.main_ppo "
                          "actor_rollout_ref.actor.strategy=fsdp\n")
                  .notes,
              Contains(HasSubstr("NCCL_IB_DISABLE is ignored")));
}

}  // namespace
}  // namespace rehearse
