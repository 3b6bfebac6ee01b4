// Scripts that start a trainer with launchers of their own: slime, Primus, Slurm, mpirun, ms-swift.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

const std::string kPretrainCommand =
    "pretrain_gpt.py " + kShape + "--seq-length 512 --micro-batch-size 1 --bf16";

Json gpus_of(const std::string& script) {
  const Json scenario = megatron(script).scenario;
  return scenario.contains("gpus") ? scenario["gpus"] : Json();
}

std::string slime_script(const std::string& flags) {
  return "ray stop --force\nray job submit --address=http://127.0.0.1:8265 -- python3 train.py "
         "--actor-num-nodes 2 "
         "--actor-num-gpus-per-node 8 --colocate --advantage-estimator grpo --rollout-batch-size 32 "
         "--n-samples-per-prompt 8 --sglang-mem-fraction-static 0.7 --hf-checkpoint x " +
         kShape + flags;
}

TEST(Slime, HasItsOwnDefaults) {
  const Imported found = megatron(slime_script("--rollout-max-response-len 1024 --global-batch-size 256"));
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["gpus"], 16);
  EXPECT_EQ(plan["precision"], "bf16");
  EXPECT_EQ(plan["zero"], 1);
  EXPECT_EQ(plan["seq"], 1024);
  EXPECT_EQ(plan["micro_batch"], 1);
  EXPECT_EQ(fate_of(found, "--sglang-mem-fraction-static"), "free");
  EXPECT_THAT(found.notes, AllOf(Contains(HasSubstr("one update of the actor is counted")),
                                 Contains(HasSubstr("--rollout-max-prompt-len is not given"))));
  EXPECT_EQ(megatron(slime_script("--fp16 --rollout-max-response-len 64")).scenario["plan"]["precision"],
            "fp16");
  EXPECT_FALSE(megatron(slime_script("--optimizer muon")).scenario["plan"].contains("zero"))
      << "Adam's alone";
}

TEST(Slime, FillsMicrobatchesWithTokens) {
  const auto plan = [](const std::string& flags) {
    return megatron(slime_script("--use-dynamic-batch-size --max-tokens-per-gpu 8192 " + flags))
        .scenario["plan"];
  };
  const Json steps =
      plan("--rollout-max-response-len 1000 --rollout-max-prompt-len 24 --num-steps-per-rollout 2");
  EXPECT_EQ(steps["seq"], 1024);
  EXPECT_EQ(steps["global_batch"], 128);
  EXPECT_EQ(steps["micro_batch"], 8);
  EXPECT_EQ(plan("--rollout-max-context-len 1024 --global-batch-size 192")["micro_batch"], 6)
      << "equal microbatches of 12 samples for each of 16 replicas";
  EXPECT_EQ(plan("--context-parallel-size 2")["seq"], 16384) << "samples of no known length";
  EXPECT_THAT(refusal([] { megatron(slime_script("--train-backend fsdp")); }),
              HasSubstr("engine of slime or miles"));
}

TEST(Slime, IsNotOpenRlhf) {
  EXPECT_THAT(refusal([] {
                megatron(
                    "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 "
                    "--micro_batch_size 2 --lora_rank 0 --bf16");
              }),
              HasSubstr("OpenRLHF"));
}

const std::string kPrimusExperiment =
    "modules:\n  pre_trainer:\n    framework: megatron\n    overrides:\n      num_layers: 4\n"
    "      hidden_size: 256\n      num_attention_heads: 4\n      seq_length: ${SEQ:512}\n      "
    "micro_batch_size: 1\n";

TEST(Primus, ReadsTheExperimentThatAScriptStarts) {
  const std::string script =
      "export SEQ=2048 NNODES=4\nexport EXP=examples/configs/small.yaml\n"
      "bash ./examples/run_slurm_pretrain.sh --micro_batch_size 8 --fp8 hybrid --sequence_parallel True "
      "2>&1\n";
  EXPECT_THAT(refusal([&] { read_launch("run.sh", script); }),
              AllOf(HasSubstr("examples/configs/small.yaml"), HasSubstr("--source small.yaml")));
  ImportRequest request;
  request.shell.files["small.yaml"] = kPrimusExperiment;
  const Imported found = read_launch("run.sh", script, request);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["micro_batch"], 8);
  EXPECT_EQ(plan["precision"], "fp8");
  EXPECT_EQ(plan["seq"], 2048) << "a variable of the script";
  EXPECT_EQ(plan["sequence_parallel"], true);
  EXPECT_EQ(plan["zero"], 1) << "Primus's default";
  EXPECT_EQ(found.scenario["gpus"], 32);
}

TEST(Primus, ReadsTheExperimentOfItsCommandLine) {
  ImportRequest request;
  request.shell.files["small.yaml"] = kPrimusExperiment;
  const auto plan = [&](const std::string& script) {
    return read_launch("run.sh", script, request).scenario["plan"];
  };
  EXPECT_EQ(plan("bash runner/primus-cli direct --log_file x -- train pretrain --config a/small.yaml "
                 "--global_batch_size=64")["global_batch"],
            64);
  EXPECT_EQ(plan("docker run --rm image bash -c \"cd x && EXP=a/small.yaml bash examples/run_pretrain.sh "
                 "--seq_length 64\"")["seq"],
            64);
  EXPECT_THAT(
      refusal([&] { plan("if [ -n \"$A\" ]; then B=x; fi\nEXP=$C/$D bash examples/run_pretrain.sh"); }),
      HasSubstr("D=VALUE"));
  EXPECT_EQ(plan("bash my/run_pretrain.sh " + kShape + "--seq-length 128")["seq"], 128) << "of no Primus";
}

TEST(Primus, CountsTheNodesOfSlurm) {
  ImportRequest request;
  request.shell.files["small.yaml"] = kPrimusExperiment;
  const auto count = [&](const std::string& script) {
    return read_launch("run.sh", script, request).scenario["gpus"].get<int>();
  };
  const std::string train = " -- train pretrain --config small.yaml seq_length=64\n";
  EXPECT_EQ(count("primus-cli slurm srun -N 4" + train), 32);
  EXPECT_EQ(count("primus-cli slurm sbatch --nodes=2 --time 1" + train), 16);
  EXPECT_EQ(count("#SBATCH -N 3\nprimus-cli slurm srun" + train), 24);
  EXPECT_EQ(count("GPUS_PER_NODE=4 NNODES=2 primus-cli direct" + train), 8);
  EXPECT_EQ(count("primus-cli direct" + train), 8) << "the launcher's defaults";
}

TEST(Launchers, StateTheProcesses) {
  EXPECT_EQ(gpus_of("mpirun -np 16 -x A=1 python " + kPretrainCommand), 16);
  EXPECT_EQ(gpus_of("mpirun -np 2 bash start.sh " + kPretrainCommand), Json()) << "which starts more";
  EXPECT_EQ(gpus_of("msrun --worker_num 32 --local_worker_num=8 " + kPretrainCommand), 32);
  EXPECT_EQ(gpus_of("deepspeed --include localhost:0,1,2,3 " + kPretrainCommand), 4);
  EXPECT_EQ(gpus_of("deepspeed --include worker-0@worker-1:0 " + kPretrainCommand), Json())
      << "all of a host";
  EXPECT_EQ(gpus_of("NPROC_PER_NODE=8 NNODES=2 megatron sft --model x " + kShape), 16);
  EXPECT_EQ(gpus_of("export NPROC_PER_NODE=4\nmegatron sft --model x " + kShape), 4);
  EXPECT_EQ(gpus_of("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node=gpu " + kPretrainCommand), 2);
  EXPECT_EQ(gpus_of("torchrun --nproc-per-node=gpu " + kPretrainCommand), Json());
}

TEST(Launchers, TakeAPartOfABatchJob) {
  const std::string job = "#SBATCH --nodes=4 --gpus-per-node=8\n";
  EXPECT_EQ(gpus_of(job + "srun python " + kPretrainCommand), 32);
  EXPECT_EQ(gpus_of(job + "srun -N 2 --ntasks-per-node=8 python " + kPretrainCommand), 16);
  EXPECT_EQ(gpus_of(job + "srun -N2 python " + kPretrainCommand), 16);
  EXPECT_EQ(gpus_of(job + "srun -N 2 bash -c \"python " + kPretrainCommand + "\""), 16) << "of the shell";
  EXPECT_EQ(gpus_of(job + "srun -n 8 python -m a.b " + kShape + "--bf16"), 8);
  EXPECT_EQ(gpus_of(job + "srun -n 8 python " + kPretrainCommand), 8);
  EXPECT_EQ(gpus_of(job + "srun --ntasks=4 --ntasks-per-node=1 python " + kPretrainCommand), 32)
      << "one task on each node";
  EXPECT_EQ(gpus_of(job + "srun -N 2 torchrun --nnodes 2 --nproc-per-node 4 " + kPretrainCommand), 8);
  EXPECT_EQ(gpus_of("#SBATCH --gpus=32\nsrun python " + kPretrainCommand), 32);
  EXPECT_EQ(gpus_of("#SBATCH --ntasks=16\nsrun python " + kPretrainCommand), 16);
  EXPECT_THAT(megatron("#SBATCH --nodes=2-4\n#SBATCH --gres=gpu:8\nsrun python " + kPretrainCommand).notes,
              Contains(HasSubstr("2-4 is a range of nodes: the fewest, 2, are counted")));
}

TEST(Launchers, NameWhatEndsTheScript) {
  const std::string script =
      "ray stop --force\nif [ -z \"$DATA\" ]; then echo none; exit 1; fi\npython train.py " + kShape;
  EXPECT_THAT(refusal([&] { megatron(script); }), AllOf(HasSubstr("line 2"), HasSubstr("DATA=VALUE")));
}

TEST(MegatronOptions, OfTwoPrecisionsAreRefused) {
  EXPECT_THAT(refusal([] { megatron("train.py " + kShape + "--bf16 --fp16"); }),
              AllOf(HasSubstr("--fp16"), HasSubstr("--bf16")));
}

TEST(MegatronOptions, OfForksTakeWordsAfterASwitch) {
  const auto plan = [](const std::string& flags) {
    return megatron("train.py " + kShape + flags).scenario["plan"];
  };
  EXPECT_EQ(plan("--bf16 1")["precision"], "bf16");
  EXPECT_EQ(plan("--bf16 0")["precision"], "fp32");
  EXPECT_EQ(plan("--bf16 True --sequence-parallel false")["sequence_parallel"], false);
  EXPECT_THAT(refusal([&] { plan("--bf16 2"); }), HasSubstr("takes no value"));
  EXPECT_EQ(plan("--model x --recompute-granularity none").contains("recompute"), false) << "ms-swift's word";
  EXPECT_EQ(plan("--model x")["recompute"], "selective");
}

TEST(MegatronOptions, NameTokenizersOfForks) {
  for (const std::string type : {"YuanTokenizer", "HFAutoTokenizer"})
    EXPECT_THAT(megatron("train.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 "
                         "--max-position-embeddings 512 --tokenizer-type " +
                         type)
                    .notes,
                Contains(AllOf(HasSubstr(type), HasSubstr("words are assumed"))));
}

TEST(MegatronOptions, RecomputeNothingWithoutAttention) {
  const auto read = [](const std::string& pattern) {
    return megatron(
        "train.py --hidden-size 256 --num-attention-heads 4 --max-position-embeddings 512 --vocab-size "
        "512 --recompute-activations --hybrid-layer-pattern " +
        pattern);
  };
  EXPECT_FALSE(read("M-M-").scenario["plan"].contains("recompute"));
  EXPECT_THAT(read("M-M-").notes, Contains(HasSubstr("which no layer of the pattern has")));
  EXPECT_EQ(read("M*M-").scenario["plan"]["recompute"], "selective");
}

}  // namespace
}  // namespace rehearse
