// Behaviour common to all frameworks, and configurations of DeepSpeed as scenarios. data/README.md names the
// samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/imported.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(Import, ReadsWhatGradientsAreClippedTo) {
  const auto of_script = [](const std::string& flags) {
    return megatron(kShape + flags).scenario["plan"]["clip_grad"];
  };
  EXPECT_EQ(of_script(""), 1.0);
  EXPECT_EQ(of_script("--clip-grad 0.25"), 0.25);
  EXPECT_EQ(of_script("--clip-grad 0"), 0.0);
  const auto of_config = [](const char* text) {
    return import_deepspeed(JsonReader(Json::parse(text), "ds.json"), 8)
        .scenario["plan"]
        .value("clip_grad", 0.0);
  };
  EXPECT_EQ(of_config(R"({"train_batch_size": 8})"), 0);
  EXPECT_EQ(of_config(R"({"train_batch_size": 8, "gradient_clipping": 0.5})"), 0.5);
  EXPECT_EQ(of_config(R"({"train_batch_size": 8, "gradient_clipping": "auto"})"), 0);
  const auto of_toml = [](const std::string& key) {
    return import_torchtitan(
               "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 4096\n" + key,
               "train.toml", 8, 0)
        .scenario["plan"]["clip_grad"];
  };
  EXPECT_EQ(of_toml(""), 1.0);
  EXPECT_EQ(of_toml("max_norm = 2.5\n"), 2.5);
}

std::vector<std::string> names_and_fates(const Imported& found) {
  std::vector<std::string> all;
  for (const ImportedOption& option : found.options)
    all.push_back(option.name + " " + to_string(option.fate));
  return all;
}

// A key may set nothing or several options, and its section may be free or ignored.
TEST(Import, ListsEachKeyOfTheFileOnce) {
  const Imported bridge =
      read_launch("run.yaml",
                  "model: {num_layers: 2, mtp_num_layers: null, num_query_groups: 2, my_own: false}\n"
                  "train: {micro_batch_size: 1, global_batch_size: 8}\nddp: {overlap_param_gather: false}\n"
                  "logger: {log_interval: 1, more: {x: 2}}\npeft: {dim: 8, alpha: 16}\nenv_vars: {}\n");
  EXPECT_THAT(names_and_fates(bridge),
              UnorderedElementsAre(
                  "model.num_layers used", "model.mtp_num_layers used", "model.num_query_groups used",
                  "model.my_own unknown", "train.micro_batch_size used", "train.global_batch_size used",
                  "ddp.overlap_param_gather used", "logger.log_interval free", "logger.more.x free",
                  "peft.dim ignored", "peft.alpha ignored", "env_vars free"));
  const Imported accelerate =
      read_launch("a.yaml",
                  "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: bf16\nmegatron_lm_config: {}\n"
                  "fsdp_config: {fsdp_version: 2}\nmpirun_config: {mpirun_ccl: '1'}\n");
  EXPECT_EQ(accelerate.options.size(), 6u);
  const Imported trainer = read_launch(
      "t.yaml", "base_model: x\nmicro_batch_size: 1\nlr_scheduler_kwargs: {min_lr: 0}\nmy: {own: 1}\n");
  EXPECT_EQ(fate_of(trainer, "lr_scheduler_kwargs.min_lr"), "free");
  EXPECT_EQ(fate_of(trainer, "my.own"), "unknown");
  const char* text =
      R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory": true}},
                         "train_batch_size": 8, "flops_profiler": {"enabled": false}})";
  const Imported zero = import_deepspeed(JsonReader(Json::parse(text), "ds.json"), 8);
  EXPECT_THAT(names_and_fates(zero),
              UnorderedElementsAre("zero_optimization/stage used", "train_batch_size used",
                                   "zero_optimization/offload_param/device ignored",
                                   "zero_optimization/offload_param/pin_memory ignored",
                                   "flops_profiler/enabled free"));
}

// Values that no scenario can express are refused with their place.
TEST(Import, RefusesToClipGradientsToMoreThanAScenarioCan) {
  EXPECT_EQ(megatron(kShape + "--clip-grad -1").scenario["plan"]["clip_grad"], 0.0)
      << "as Megatron-LM takes it";
  EXPECT_THAT(refusal([] { megatron(kShape + "--clip-grad 1e10"); }),
              AllOf(HasSubstr("train.sh: line 1: --clip-grad"), HasSubstr("1e+09")));
  const Json config = {{"train_batch_size", 8}, {"gradient_clipping", 1e10}};
  EXPECT_THAT(refusal([&] { import_deepspeed(JsonReader(config, "ds.json"), 8); }),
              AllOf(HasSubstr("/gradient_clipping"), HasSubstr("to 1e+09")));
  const auto of_toml = [](const std::string& norm) {
    const std::string model = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 4096\n";
    return refusal([&] { import_torchtitan(model + "max_norm = " + norm, "train.toml", 8, 0); });
  };
  EXPECT_THAT(of_toml("1e10"), AllOf(HasSubstr("/training/max_norm"), HasSubstr("to 1e+09")));
  EXPECT_THAT(of_toml("inf"), AllOf(HasSubstr("/training/max_norm"), HasSubstr("found inf")));
}

TEST(ImportDeepSpeed, ReadsTheSampleOfZero3WithOffload) {
  const Imported found = import_deepspeed(JsonReader::open(path("ds_zero3.json")), 64);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_EQ(plan["precision"], "fp16");
  EXPECT_EQ(plan["offload"], "optimizer");
  EXPECT_EQ(plan["overlap_grad_reduce"], true);
  EXPECT_FALSE(plan.contains("bucket")) << "0 elements are no bucket";
  EXPECT_THAT(found.notes, Contains(HasSubstr("offload_param")));
}

TEST(ImportDeepSpeed, LeavesAutoToDefaultsAndMultipliesTheBatch) {
  const Imported found = import_deepspeed(JsonReader::open(path("ds_zero3_auto.json")), 16);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["global_batch"], 2 * 4 * 16);
  EXPECT_FALSE(plan.contains("precision"));
  EXPECT_FALSE(plan.contains("bucket"));
  EXPECT_THAT(found.notes, Contains(HasSubstr("\"train_batch_size\" is auto")));
}

// Values derived from the command line also replace those derived from the file, even where the file's own
// value cannot be read.
TEST(Import, TheCommandLineWinsOverKeysOfConfigurations) {
  const Json config = {{"train_micro_batch_size_per_gpu", "many"}, {"zero_optimization", {{"stage", 7}}}};
  const auto read = [&](const SaidOverFile& over) {
    return import_deepspeed(JsonReader(config, "ds.json"), 8, over);
  };
  EXPECT_THAT(refusal([&] { read({}); }),
              AllOf(HasSubstr("/zero_optimization/stage"), HasSubstr("/train_micro_batch_size_per_gpu")))
      << "both at once";
  const Json plan = read({{"/plan/zero", "3"}, {"/plan/micro_batch", "2"}}).scenario["plan"];
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["overlap_grad_reduce"], true) << "as stage 3 has it";
  const Json titan = import_torchtitan("[parallelism]\ntensor_parallel_degree = \"two\"\n", "x.toml", 8, 0,
                                       {{"/plan/tp", "4"}})
                         .scenario["plan"];
  EXPECT_EQ(titan["tp"], 4);
}

TEST(ImportDeepSpeed, NotesUnknownKeysAndListsEachOption) {
  const Imported found = import_deepspeed(
      JsonReader(
          Json::parse(R"({"zero_optimization": {"stge": 3, "contiguous_gradients": true, "sub_group_size": 5},
                                 "zero_optimisation": {}, "train_batch_size": 8})"),
          "ds.json"),
      8);
  const auto fate = [&](const std::string& name) {
    for (const ImportedOption& option : found.options)
      if (option.name == name) return std::string(to_string(option.fate)) + option.nearest;
    return std::string("absent");
  };
  EXPECT_EQ(fate("zero_optimization/stge"), "unknownstage");
  EXPECT_EQ(fate("zero_optimisation"), "unknownzero_optimization");
  EXPECT_EQ(fate("zero_optimization/contiguous_gradients"), "used");
  EXPECT_EQ(fate("zero_optimization/sub_group_size"), "ignored");
  EXPECT_EQ(fate("train_batch_size"), "used");
  EXPECT_THAT(found.notes, Contains(HasSubstr("did you mean \"stage\"?")));
}

TEST(ImportDeepSpeed, RefusesBadValuesAndBatchesThatDisagree) {
  const auto read = [](const char* text, int gpus) {
    return refusal([&] { import_deepspeed(JsonReader(Json::parse(text), "ds.json"), gpus); });
  };
  EXPECT_THAT(read(R"({"zero_optimization": {"stage": 4}})", 8), HasSubstr("from 0 to 3"));
  EXPECT_THAT(read(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2,
                       "gradient_accumulation_steps": 2})",
                   8),
              AllOf(HasSubstr("/train_batch_size"), HasSubstr("32")));
}

// Megatron-LM's tests list the words of NeMo's command line as its own options.
TEST(ImportYaml, ReadsWordsOfNemoAsTheConfigurationThatTheyMake) {
  const Imported first = read_launch(
      "model_config.yaml",
      "ENV_VARS: {CUDA_DEVICE_MAX_CONNECTIONS: 1}\nMODEL_ARGS:\n  trainer.num_nodes: 1\n  trainer.devices: "
      "8\n"
      "  trainer.max_epochs: 'null'\n  trainer.precision: bf16\n  model.num_layers: 12\n  model.hidden_size: "
      "768\n"
      "  model.num_attention_heads: 12\n  model.micro_batch_size: 1\n  model.global_batch_size: 8\n"
      "  model.tensor_model_parallel_size: 2\n  model.pipeline_model_parallel_size: 4\n"
      "  model.sequence_parallel: 'True'\n  model.encoder_seq_length: 2048\n"
      "  model.max_position_embeddings: 2048\n  model.ffn_hidden_size: 3072\n"
      "  model.optim.name: distributed_fused_adam\n");
  EXPECT_EQ(first.scenario["gpus"], 8);
  EXPECT_EQ(first.scenario["plan"]["tp"], 2);
  EXPECT_EQ(first.scenario["plan"]["pp"], 4);
  EXPECT_EQ(first.scenario["plan"]["zero"], 1);
  EXPECT_EQ(first.scenario["plan"]["precision"], "bf16");
  EXPECT_EQ(first.scenario["plan"]["sequence_parallel"], true);
  EXPECT_EQ(first.model["num_hidden_layers"], 12);
  const Imported second = read_launch(
      "model_config.yaml",
      "MODEL_ARGS:\n  trainer.num_nodes: 2\n  trainer.devices: 8\n  trainer.max_steps: 50\n"
      "  trainer.strategy.tensor_model_parallel_size: 4\n  trainer.strategy.sequence_parallel: true\n"
      "  model.config.num_layers: 13\n  data.micro_batch_size: 1\n  data.global_batch_size: 8\n"
      "  data.seq_length: 2048\n");
  EXPECT_EQ(second.scenario["gpus"], 16);
  EXPECT_EQ(second.scenario["plan"]["tp"], 4);
  EXPECT_EQ(second.scenario["plan"]["global_batch"], 8);
  EXPECT_EQ(second.scenario["plan"]["seq"], 2048);
  EXPECT_THAT(second.notes, Contains(HasSubstr("pass --model")));
  EXPECT_THAT(second.notes, Contains(HasSubstr("no precision is named: fp32 is counted")));
}

}  // namespace
}  // namespace rehearse
