#include "export/launch_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/read.h"

namespace rehearse {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Plan large_plan() {
  Plan plan;
  plan.tp = 8;
  plan.pp = 16;
  plan.vpp = 2;
  plan.dp = 4;
  plan.micro_batch = 1;
  plan.global_batch = 1536;
  plan.schedule = ScheduleName::interleaved;
  plan.overlap_p2p = true;
  plan.sequence_parallel = true;
  plan.zero = 1;
  plan.recompute = Recompute::selective;
  return plan;
}

TEST(Megatron, WritesGpt3AsItsScriptsDo) {
  const LaunchLine launch = megatron_flags(read_model("gpt3-175b"), large_plan());
  EXPECT_EQ(launch.why_not, "");
  for (const char* flags :
       {"--vocab-size 51200 --make-vocab-size-divisible-by 1 ",
        "--num-layers 96 --hidden-size 12288 --ffn-hidden-size 49152 --num-attention-heads 96",
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --sequence-parallel "
        "--num-virtual-stages-per-pipeline-rank 2",
        "--micro-batch-size 1 --global-batch-size 1536",
        "--use-distributed-optimizer --cross-entropy-loss-fusion --overlap-grad-reduce",
        "--recompute-granularity selective --recompute-modules core_attn --bf16",
        "--normalization LayerNorm"})
    EXPECT_THAT(launch.text, HasSubstr(flags));
  EXPECT_THAT(launch.text, Not(HasSubstr("--swiglu")));
  EXPECT_THAT(launch.text, Not(HasSubstr("--group-query-attention")));
}

TEST(Megatron, WritesExpertsAndLatentAttention) {
  Plan plan;
  plan.ep = 64;
  plan.dp = 64;
  const std::string text = megatron_flags(read_model("deepseek-v3"), plan).text;
  for (const char* flags :
       {"--num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048", "--moe-layer-freq [0,0,0,1,1",
        "--multi-latent-attention --q-lora-rank 1536", "--expert-model-parallel-size 64"})
    EXPECT_THAT(text, HasSubstr(flags));
}

TEST(Megatron, WritesModulesOfMultiTokenPredictionAndTheirPlace) {
  Plan plan;
  plan.pp = 2;
  plan.layers_per_stage = {31, 30};
  const std::string text = megatron_flags(read_model("deepseek-v3"), plan).text;
  EXPECT_THAT(text, HasSubstr("--mtp-num-layers 1"));
  EXPECT_THAT(text, HasSubstr("--pipeline-model-parallel-layout \"Et*31|t*30mL\""));
}

TEST(Megatron, WritesGptOssAsMegatronBridgeBuildsIt) {
  Plan plan;
  plan.ep = plan.dp = 8;
  const std::string text = megatron_flags(read_model("gpt-oss-120b"), plan).text;
  EXPECT_THAT(text, HasSubstr("--window-size 127,0 --window-attn-skip-freq 2 --softmax-type learnable "
                              "--quick-geglu --glu-linear-offset 1 --activation-func-clamp-value 7"));
  EXPECT_THAT(text, HasSubstr("--no-rope-fusion")) << "YaRN's factor has no fused kernel";
  for (const char* others : {"--swiglu", "--disable-bias-linear", "--add-qkv-bias", "--mtp-num-layers"})
    EXPECT_THAT(text, Not(HasSubstr(others)));
}

TEST(Megatron, WritesLayersPerStageAsALayout) {
  Plan plan = large_plan();
  plan.pp = 2;
  plan.layers_per_stage = {3, 0, 1, 4};
  const std::string text = megatron_flags(read_model("gpt2"), plan).text;
  EXPECT_THAT(text, HasSubstr("--pipeline-model-parallel-layout \"Et*3||t|t*4L\""));
  EXPECT_THAT(text, Not(HasSubstr("--num-virtual-stages-per-pipeline-rank")));
}

TEST(Megatron, HasNoWordsForSomePlans) {
  const Model model = read_model("gpt2");
  Plan plan = large_plan();
  plan.schedule = ScheduleName::dualpipe_v;
  EXPECT_THAT(megatron_flags(model, plan).why_not, HasSubstr("dualpipe-v"));
  plan = large_plan();
  plan.order = {Axis::dp, Axis::tp, Axis::cp, Axis::ep, Axis::pp};
  EXPECT_THAT(megatron_flags(model, plan).why_not, HasSubstr("orders ranks"));
  plan = large_plan();
  plan.tp_comm_fc2_sms = 8;
  EXPECT_THAT(megatron_flags(model, plan).why_not, HasSubstr("--tp-comm-overlap-cfg"));
  EXPECT_EQ(megatron_flags(model, plan).text, "");
}

TEST(Megatron, SaysThatItHasNoWordsForImages) {
  Model model = read_model("llama3-8b");
  model.towers.emplace_back().is_known = true;
  Plan plan;
  plan.images = 2;
  plan.image_tokens = 256;
  EXPECT_THAT(megatron_flags(model, plan).unsaid, Contains("image_tokens"));
  plan.images = 0;
  EXPECT_THAT(megatron_flags(model, plan).unsaid, Not(Contains("images")));
}

TEST(DeepSpeed, BatchIsMicrobatchTimesAccumulationTimesReplicas) {
  Plan plan;
  plan.dp = 64;
  plan.zero = 3;
  plan.micro_batch = 2;
  plan.global_batch = 1024;
  plan.grad_reduce = Precision::bf16;
  plan.bucket_bytes = 1e9;
  const Json config = Json::parse(deepspeed_config(read_model("gpt2"), plan).text);
  EXPECT_EQ(config["train_batch_size"].get<int>(), config["train_micro_batch_size_per_gpu"].get<int>() *
                                                       config["gradient_accumulation_steps"].get<int>() *
                                                       plan.dp);
  EXPECT_EQ(config["zero_optimization"]["stage"], 3);
  EXPECT_EQ(config["zero_optimization"]["reduce_bucket_size"], 500'000'000);
  EXPECT_EQ(config["bf16"]["enabled"], true);
}

TEST(DeepSpeed, SaysWhatItCannotRun) {
  Plan plan = large_plan();
  EXPECT_THAT(deepspeed_config(read_model("gpt2"), plan).why_not, HasSubstr("1f1b only"));
  plan = Plan{};
  plan.pp = 2;
  plan.zero = 3;
  EXPECT_THAT(deepspeed_config(read_model("gpt2"), plan).why_not, HasSubstr("ZeRO-3"));
  plan = Plan{};
  plan.cp = 2;
  EXPECT_THAT(deepspeed_config(read_model("gpt2"), plan).why_not, HasSubstr("context"));
  plan = Plan{};
  plan.dp = 8;
  plan.zero = 1;
  plan.zero_shard = 2;
  EXPECT_THAT(deepspeed_config(read_model("gpt2"), plan).why_not, HasSubstr("mics_shard_size"));
}

TEST(Torchtitan, WritesDegreesScheduleAndRecompute) {
  Plan plan = large_plan();
  plan.zero = 3;
  plan.dp = 4;
  plan.reshard_after_forward = false;
  plan.recompute = Recompute::op;
  const LaunchLine launch = torchtitan_toml(read_model("gpt3-175b"), plan);
  EXPECT_EQ(launch.why_not, "");
  for (const char* line :
       {"[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = 4\n",
        "fsdp_reshard_after_forward = \"never\"\n", "tensor_parallel_degree = 8\n",
        "pipeline_parallel_schedule = \"Interleaved1F1B\"\n", "pipeline_parallel_layers_per_stage = 3\n",
        "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n",
        "local_batch_size = 384\n", "[compile]\nenable = true\n"})
    EXPECT_THAT(launch.text, HasSubstr(line));
  plan.fused_activation = false;
  EXPECT_THAT(torchtitan_toml(read_model("gpt3-175b"), plan).text,
              HasSubstr("[compile]\nenable = true\ncomponents = [\"loss\"]\n"));
  plan.fused_cross_entropy = false;
  EXPECT_THAT(torchtitan_toml(read_model("gpt3-175b"), plan).text, HasSubstr("[compile]\nenable = false\n"));
}

TEST(Torchtitan, SaysWhatIsAsynchronousAndInWhichPrecision) {
  Plan plan = large_plan();
  plan.zero = 3;
  plan.pp = plan.vpp = 1;
  plan.schedule = ScheduleName::one_f_one_b;
  plan.recompute = Recompute::full;
  plan.sequence_parallel = plan.tp_comm_overlap = true;
  plan.precision = Precision::fp8;
  plan.fp8_scaling = Fp8Scaling::tensor_gathered;
  const Model model = read_model("llama3-70b");
  LaunchLine launch = torchtitan_toml(model, plan);
  EXPECT_EQ(launch.why_not, "");
  for (const char* line :
       {"enable_async_tensor_parallel = true\n", "[model]\nconverters = [\"quantize.linear.float8\"]\n",
        "[quantize.linear.float8]\nfilter_fqns = [\"output\"]\nenable_fsdp_float8_all_gather = true\n"})
    EXPECT_THAT(launch.text, HasSubstr(line));
  plan.fp8_scaling = Fp8Scaling::row;
  EXPECT_THAT(torchtitan_toml(model, plan).text, HasSubstr("recipe_name = \"rowwise\"\n"));
  plan.precision = Precision::fp32;
  launch = torchtitan_toml(model, plan);
  EXPECT_THAT(launch.text, HasSubstr("mixed_precision_param = \"float32\"\n\n[parallelism]\n"));
  EXPECT_THAT(launch.text, Not(HasSubstr("float8")));
  plan.fused_rotary = false;
  EXPECT_THAT(torchtitan_toml(model, plan).why_not, HasSubstr("compiled"));
  plan.precision = Precision::fp16;
  EXPECT_THAT(torchtitan_toml(model, plan).why_not, HasSubstr("fp16"));
}

TEST(Megatron, SaysWhatIsFused) {
  const Model model = read_model("mixtral-8x7b");
  Plan plan;
  std::string text = megatron_flags(model, plan).text;
  EXPECT_THAT(text, HasSubstr("--moe-permute-fusion"));
  EXPECT_THAT(text, HasSubstr("--moe-router-fusion"));
  EXPECT_THAT(text, Not(HasSubstr("accumulation-fusion"))) << "Megatron-LM's default";
  plan.fused_permute = plan.fused_router = plan.fused_accumulation = false;
  text = megatron_flags(model, plan).text;
  EXPECT_THAT(text, Not(HasSubstr("--moe-permute-fusion")));
  EXPECT_THAT(text, Not(HasSubstr("--moe-router-fusion")));
  EXPECT_THAT(text, HasSubstr("--no-gradient-accumulation-fusion"));
}

TEST(Megatron, SaysWhatDispatchesRows) {
  const Model model = read_model("mixtral-8x7b");
  Plan plan;
  plan.ep = plan.dp = 8;
  EXPECT_THAT(megatron_flags(model, plan).text, HasSubstr("--moe-token-dispatcher-type alltoall"));
  plan.dispatcher = Dispatcher::hybridep;
  EXPECT_THAT(megatron_flags(model, plan).text,
              HasSubstr("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep"));
  plan.dispatcher_sms = 32;
  EXPECT_THAT(megatron_flags(model, plan).text, HasSubstr("--moe-flex-dispatcher-num-sms 32"));
  plan.zero = 3;
  EXPECT_THAT(torchtitan_toml(model, plan).why_not, HasSubstr("does not set the SMs"));
  plan.dispatcher_sms = 0;
  EXPECT_THAT(torchtitan_toml(model, plan).text, HasSubstr("expert_parallel_comm_backend = \"hybridep\"\n"));
}

TEST(Megatron, SaysHowFp8IsScaled) {
  const auto flags = [](Fp8Scaling scaling, Recipe recipe) {
    Plan plan;
    plan.precision = Precision::fp8;
    plan.fp8_scaling = scaling;
    plan.recipe = recipe;
    plan.zero = 1;
    plan.overlap_param_gather = true;
    return megatron_flags(read_model("gpt2"), plan).text;
  };
  EXPECT_TRUE(flags(Fp8Scaling::tensor, Recipe::megatron).ends_with("--bf16 --fp8-format hybrid"));
  Plan in_fp4;
  in_fp4.precision = Precision::fp4;
  EXPECT_TRUE(megatron_flags(read_model("gpt2"), in_fp4)
                  .text.ends_with("--bf16 --fp4-format e2m1 --fp4-recipe nvfp4"));
  EXPECT_THAT(flags(Fp8Scaling::current, Recipe::fp8_weights),
              HasSubstr("--fp8-recipe tensorwise --fp8-param-gather"));
  EXPECT_THAT(flags(Fp8Scaling::mx, Recipe::fp8_weights),
              HasSubstr("--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather "
                        "--reuse-grad-buf-for-mxfp8-param-ag"));
}

TEST(Megatron, WritesHybridModelsByTheirPattern) {
  Plan plan;
  plan.pp = 2;
  plan.ep = plan.dp = plan.global_batch = 8;
  Model model = read_model("nemotron3-nano-30b-a3b");
  std::string text = megatron_flags(model, plan).text;
  EXPECT_THAT(
      text, HasSubstr("--hybrid-layer-pattern \"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME\" "
                      "--mamba-num-heads 64 --mamba-head-dim 64 --mamba-num-groups 8 --mamba-state-dim 128"));
  EXPECT_THAT(text, HasSubstr("--position-embedding-type none --squared-relu"));
  EXPECT_THAT(text, Not(HasSubstr("--num-layers ")));
  plan.layers_per_stage = {20, 32};
  model.mtp_layers = 2;
  model.mtp_pattern = "*E";
  model.mtp_repeated = true;
  text = megatron_flags(model, plan).text;
  EXPECT_THAT(text, HasSubstr("\"MEMEM*EMEMEM*EMEMEM*|EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME/*E/*E\" "
                              "--mtp-use-repeated-layer"));
  EXPECT_THAT(text, Not(HasSubstr("--pipeline-model-parallel-layout")));
  EXPECT_THAT(megatron_flags(read_model("nemotron3-super-120b-a12b"), plan).text,
              HasSubstr("--moe-latent-size 1024"));
}

TEST(Megatron, SaysWhichLayersStayInBf16) {
  Plan plan;
  plan.precision = Precision::fp4;
  plan.bf16_last_layers = 14;
  EXPECT_THAT(
      megatron_flags(read_model("llama3-8b"), plan).text,
      HasSubstr("--first-last-layers-bf16 --num-layers-at-start-in-bf16 0 --num-layers-at-end-in-bf16 14"));
}

TEST(Megatron, SaysWhatCudaGraphsHold) {
  Plan plan;
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).text, Not(HasSubstr("cuda-graph")));
  plan.cuda_graph = true;
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).text,
              HasSubstr("--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad"));
  plan.cuda_graph_modules = {GraphModule::attn, GraphModule::mlp};
  EXPECT_THAT(
      megatron_flags(read_model("gpt2"), plan).text,
      HasSubstr("--te-rng-tracker --cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp"));
  EXPECT_THAT(deepspeed_config(read_model("gpt2"), plan).why_not, HasSubstr("CUDA graphs"));
  EXPECT_THAT(torchtitan_toml(read_model("gpt2"), plan).why_not, HasSubstr("CUDA graphs"));
}

TEST(Megatron, SaysHowManyCopiesOfTheDividedStateThereAre) {
  Plan plan;
  plan.dp = 16;
  plan.zero = 1;
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).text, Not(HasSubstr("instances")));
  plan.zero_shard = 4;
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).text,
              HasSubstr("--num-distributed-optimizer-instances 4"));
}

TEST(Megatron, SaysThatTheActivationIsSquaredReLU) {
  EXPECT_THAT(megatron_flags(read_model("nemotron4-15b"), {}).text, HasSubstr("--squared-relu"));
  EXPECT_THAT(megatron_flags(read_model("gpt2"), {}).text, Not(HasSubstr("--squared-relu")));
}

TEST(Launch, SaysWhatGradientsAreClippedTo) {
  Plan plan;
  const Model model = read_model("gpt2");
  EXPECT_THAT(megatron_flags(model, plan).text, HasSubstr("--clip-grad 0"));
  EXPECT_FALSE(Json::parse(deepspeed_config(read_model("gpt2"), plan).text).contains("gradient_clipping"));
  plan.clip_grad = 0.5;
  EXPECT_THAT(megatron_flags(model, plan).text, HasSubstr("--clip-grad 0.5"));
  EXPECT_EQ(Json::parse(deepspeed_config(read_model("gpt2"), plan).text)["gradient_clipping"], 0.5);
  EXPECT_THAT(torchtitan_toml(model, plan).text, HasSubstr("\nmax_norm = 0.5\n"));
}

TEST(Launch, NamesWhatItLeavesUnsaid) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  const Model model = read_model("llama3-8b");
  Plan plan;
  plan.dp = 8;
  plan.zero = 1;
  plan.overlap_grad_reduce = true;
  EXPECT_THAT(megatron_flags(model, plan).unsaid, IsEmpty());
  plan.fused_adam = plan.sync_step = false;
  EXPECT_THAT(megatron_flags(model, plan).unsaid, ElementsAre("fused_adam", "sync_step"));
  plan.scatter_gather = true;
  EXPECT_THAT(megatron_flags(model, plan).unsaid, Not(Contains("scatter_gather"))) << "without a pipeline";
  plan.grad_reduce = Precision::fp16;
  EXPECT_THAT(megatron_flags(model, plan).unsaid, Contains("grad_reduce"));
  EXPECT_THAT(deepspeed_config(model, plan).unsaid, Not(Contains("grad_reduce")));
  plan.recompute = Recompute::full;
  EXPECT_THAT(megatron_flags(model, plan).unsaid, Not(Contains("recompute")));
  EXPECT_THAT(deepspeed_config(model, plan).unsaid, Contains("recompute"));
  plan.zero = 2;
  EXPECT_THAT(torchtitan_toml(model, plan).unsaid, Contains("zero"));
}

TEST(Megatron, SaysHowAttentionAndBucketsAreMade) {
  Plan plan;
  plan.fused_attention = false;
  plan.bucket_bytes = 400e6;
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).text,
              HasSubstr("--ddp-bucket-size 100000000 --attention-backend unfused"));
  plan.grad_reduce = Precision::bf16;
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).text, HasSubstr("--ddp-bucket-size 200000000"));
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).unsaid, Not(Contains("bucket")));
  plan.dp = 2;
  plan.bucket_bytes = 1;  // less than an element
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).text, Not(HasSubstr("--ddp-bucket-size")));
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).unsaid, Contains("bucket"));
  EXPECT_THAT(deepspeed_config(read_model("gpt2"), plan).unsaid, Contains("bucket"));
}

TEST(Torchtitan, ListsTheModulesOfUnevenStages) {
  Plan plan;
  plan.pp = 2;
  plan.layers_per_stage = {2, 1};
  EXPECT_THAT(torchtitan_toml(read_model("gpt2"), plan).text,
              HasSubstr("module_fqns_per_model_part = [\n"
                        "  [\"tok_embeddings\", \"layers.0\", \"layers.1\"],\n"
                        "  [\"layers.2\", \"norm\", \"output\"],\n]\n"));
}

TEST(Torchtitan, SaysInWhichPrecisionGradientsAndStateAre) {
  Plan plan;
  plan.dp = 8;
  plan.zero = 3;
  EXPECT_THAT(torchtitan_toml(read_model("llama3-8b"), plan).text, Not(HasSubstr("bfloat16")));
  plan.grad_reduce = Precision::bf16;
  plan.recipe = Recipe::bf16;
  EXPECT_THAT(torchtitan_toml(read_model("llama3-8b"), plan).text,
              HasSubstr("mixed_precision_reduce = \"bfloat16\"\ndtype = \"bfloat16\"\n"));
}

TEST(Torchtitan, SaysWhatItCannotRun) {
  Plan plan = large_plan();
  EXPECT_THAT(torchtitan_toml(read_model("gpt2"), plan).why_not, HasSubstr("ZeRO-1"));
  plan.zero = 0;
  plan.schedule = ScheduleName::zb_h1;
  EXPECT_THAT(torchtitan_toml(read_model("gpt2"), plan).why_not, HasSubstr("zb-h1"));
  plan.schedule = ScheduleName::one_f_one_b;
  EXPECT_THAT(torchtitan_toml(read_model("gpt2"), plan).why_not, HasSubstr("modules"));
  plan = Plan{};
  plan.cp = 2;
  EXPECT_THAT(torchtitan_toml(read_model("gpt2"), plan).why_not, HasSubstr("context-parallel ranks"));
  plan = Plan{};
  plan.vpp = 2;
  plan.schedule = ScheduleName::zb_v;
  EXPECT_THAT(torchtitan_toml(read_model("gpt2"), plan).why_not, HasSubstr("only with pipeline parallelism"));
  EXPECT_THAT(megatron_flags(read_model("gpt2"), plan).why_not, HasSubstr("only with pipeline parallelism"));
}

}  // namespace
}  // namespace rehearse
