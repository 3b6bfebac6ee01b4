// A value of another type than the key's is refused, converted as the framework does it, or noted. It never
// gives the answer that the file gives without the key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "frameworks/megatron_options.h"
#include "frameworks/python_recipe.h"
#include "frameworks/python_settings.h"
#include "frameworks/yaml_text.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

using Read = std::function<Imported(const Json& file)>;

// Two answers differ where the scenario, the network, a note or the refusal does. The effect of a null key
// stands among the options.
std::string answer_of(const Read& read, const Json& file, const std::string& null_key = "") {
  try {
    const Imported found = read(file);
    std::string answer = found.scenario.dump() + found.model.dump();
    for (const std::string& note : found.notes) answer += "\n" + note;
    for (const ImportedOption& option : found.options)
      if (!null_key.empty() && option.name.find(null_key) != std::string::npos) answer += option.effect;
    return answer;
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<Json> wrong_values(const std::string& kind) {
  std::vector<Json> values = {2.5, "seven", nullptr, Json::array({3}), {{"a", 1}}, 1e30, ".nan"};
  if (kind != "word") values.emplace_back(-7);
  if (kind == "integer" || kind == "number") values.emplace_back(true);
  if (kind == "number") values.erase(values.begin());  // 2.5 is a number
  return values;
}

Json without_key(Json file, const std::string& path) {
  const std::size_t dot = path.find_last_of('.');
  Json* section = &file;
  if (dot != std::string::npos) {
    set_at_path(file, path, nullptr);
    section = const_cast<Json*>(at_path(file, path.substr(0, dot)));
  }
  section->erase(path.substr(dot == std::string::npos ? 0 : dot + 1));
  return file;
}

void expect_typed(const Read& read, const Json& file, const std::map<std::string, std::string>& keys) {
  for (const auto& [path, kind] : keys) {
    const std::string key = path.substr(path.find_last_of('.') + 1);
    const Json base = without_key(file, path);
    for (const Json& value : wrong_values(kind)) {
      Json changed = base;
      set_at_path(changed, path, value);
      const std::string null_key = value.is_null() ? key : "";
      EXPECT_NE(answer_of(read, changed, null_key), answer_of(read, base, null_key))
          << path << " (" << kind << ") = " << value.dump();
    }
  }
}

Read by_kind(const std::string& name) {
  return [name](const Json& file) { return read_launch(name, file.dump()); };
}

// JSON is YAML too. All keys that the reader asks for are tried, also those that the file lacks.
void expect_typed_yaml(const std::string& yaml) {
  const Json file = read_yaml(yaml, "x.yaml").json;
  const Read read = by_kind("x.yaml");
  const Imported found = read(file);
  EXPECT_GT(found.asked.size(), 5U) << yaml;
  expect_typed(read, file, found.asked);
}

TEST(TypedValues, OfNanotron) {
  expect_typed_yaml(
      "parallelism: {dp: 2, tp: 2, pp: 2}\ntokens: {micro_batch_size: 2, sequence_length: 512}\n"
      "model: {model_config: {hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, vocab_size: 512,"
      " intermediate_size: 256, num_key_value_heads: 4}}\noptimizer: {zero_stage: 0}\n");
}

TEST(TypedValues, OfTrainers) {
  expect_typed_yaml(
      "base_model: x\nsequence_len: 4096\nmicro_batch_size: 2\nfsdp_config: {offload_params: false}\n");
  expect_typed_yaml(
      "model_name_or_path: x\nfinetuning_type: full\ntemplate: llama3\nper_device_train_batch_size: 2\n");
  expect_typed_yaml("model_name_or_path: x\nper_device_train_batch_size: 2\nmax_length: 4096\n");
}

TEST(TypedValues, OfLlmFoundry) {
  expect_typed_yaml(
      "model: {name: mpt_causal_lm, d_model: 256, n_heads: 4, n_layers: 2}\nmax_seq_len: 512\n"
      "global_train_batch_size: 64\ndevice_train_microbatch_size: 2\ntrain_loader: {name: text}\n"
      "optimizer: {name: adam}\nprecision: amp_bf16\nfsdp_config: {sharding_strategy: FULL_SHARD}\n");
}

TEST(TypedValues, OfMaxText) {
  expect_typed_yaml(
      "base_config: base.yml\nper_device_batch_size: 4\nmax_target_length: 4096\nici_pipeline_parallelism: "
      "2\n"
      "num_experts: 8\nhardware: gpu\n");
}

TEST(TypedValues, OfVerl) {
  expect_typed_yaml(
      "data: {max_prompt_length: 256, max_response_length: 256}\ntrainer: {n_gpus_per_node: 8, nnodes: 1}\n"
      "actor_rollout_ref: {model: {path: x}, actor: {strategy: fsdp, ppo_micro_batch_size_per_gpu: 2}}\n");
  expect_typed_yaml(
      "data: {max_prompt_length: 256, max_response_length: 256}\ntrainer: {n_gpus_per_node: 8, nnodes: 1}\n"
      "actor_rollout_ref: {model: {path: x}, actor: {strategy: megatron, ppo_micro_batch_size_per_gpu: 2, "
      "megatron: {tensor_model_parallel_size: 2}}}\n");
}

TEST(TypedValues, OfDeepSpeed) {
  const Json file = {{"train_micro_batch_size_per_gpu", 2},
                     {"zero_optimization", {{"stage", 2}}},
                     {"bf16", {{"enabled", true}}}};
  expect_typed(by_kind("ds.json"), file,
               {{"train_micro_batch_size_per_gpu", "integer"},
                {"train_batch_size", "integer"},
                {"gradient_accumulation_steps", "integer"},
                {"gradient_clipping", "number"},
                {"sequence_parallel_size", "integer"},
                {"zero_optimization.stage", "integer"},
                {"zero_optimization.overlap_comm", "switch"},
                {"zero_optimization.cpu_offload", "switch"},
                {"zero_optimization.reduce_bucket_size", "number"},
                {"zero_optimization.zero_hpz_partition_size", "integer"},
                {"bf16.enabled", "switch"},
                {"fp16.enabled", "switch"},
                {"pipeline.stages", "integer"},
                {"pipeline.activation_checkpoint_interval", "integer"},
                {"tensor_parallel.autotp_size", "integer"},
                {"tensor_parallel.tp_overlap_comm", "switch"},
                {"torch_autocast.enabled", "switch"},
                {"activation_checkpointing.partition_activations", "switch"}});
}

TEST(TypedValues, OfAccelerate) {
  const Json file = {{"distributed_type", "FSDP"}, {"num_processes", 8}, {"mixed_precision", "bf16"}};
  expect_typed(by_kind("a.yaml"), file,
               {{"num_processes", "integer"},
                {"num_machines", "integer"},
                {"mixed_precision", "word"},
                {"gradient_accumulation_steps", "integer"},
                {"fsdp_config.fsdp_version", "integer"},
                {"fsdp_config.fsdp_offload_params", "switch"},
                {"fsdp_config.fsdp_activation_checkpointing", "switch"},
                {"parallelism_config.parallelism_config_tp_size", "integer"},
                {"parallelism_config.parallelism_config_cp_size", "integer"}});
}

TEST(TypedValues, OfTorchtitan) {
  const Read read = [](const Json& file) {
    return import_torchtitan_json(JsonReader(file, "x.toml"), 16, 32, {});
  };
  const Json file = {{"model", {{"name", "llama3"}, {"flavor", "8B"}}}, {"training", {{"seq_len", 4096}}}};
  expect_typed(read, file,
               {{"training.seq_len", "integer"},
                {"training.local_batch_size", "integer"},
                {"training.max_norm", "number"},
                {"training.enable_cpu_offload", "switch"},
                {"training.deterministic", "switch"},
                {"parallelism.tensor_parallel_degree", "integer"},
                {"parallelism.pipeline_parallel_degree", "integer"},
                {"parallelism.context_parallel_degree", "integer"},
                {"parallelism.data_parallel_shard_degree", "integer"},
                {"parallelism.enable_async_tensor_parallel", "switch"},
                {"compile.enable", "switch"},
                {"optimizer.early_step_in_backward", "switch"}});
}

// Every number and switch of Megatron-LM that the reader uses, by its name in YAML.
TEST(TypedValues, OfMegatron) {
  const Json file = {{"num_layers", 4},
                     {"hidden_size", 256},
                     {"num_attention_heads", 4},
                     {"seq_length", 512},
                     {"max_position_embeddings", 512},
                     {"micro_batch_size", 1},
                     {"bf16", true},
                     {"vocab_size", 1024}};
  int tried = 0;
  for (const MegatronOption& option : megatron_options()) {
    const bool is_read = option.role == OptionRole::field || option.role == OptionRole::combined ||
                         option.role == OptionRole::shape;
    const bool is_switch = option.takes == OptionTakes::nothing;
    if (!is_read || option.negates || !(is_switch || option.takes_number())) continue;
    const std::string key = option.arguments.front();
    const Json base = without_key(file, key);
    std::vector<Json> values = {"seven", Json::array({3}), Json::object(), nullptr};
    if (!is_switch) values.emplace_back(false);
    if (is_switch || option.takes == OptionTakes::integer) values.insert(values.end(), {2.5, 1e30});
    for (const Json& value : values) {
      Json changed = base;
      changed[key] = value;
      const Read read = by_kind("x.yaml");
      const std::string null_key = value.is_null() ? key : "";
      EXPECT_NE(answer_of(read, changed, null_key), answer_of(read, base, null_key))
          << key << " = " << value.dump();
    }
    ++tried;
  }
  EXPECT_GT(tried, 60);
}

std::string registry(const std::string& length) {
  return "from torchtitan.trainer import Trainer\ndef llama3_8b():\n  return Trainer.Config(\n"
         "    model_spec=model_registry(\"8B\"),\n    training=TrainingConfig(\n"
         "      num_tokens_per_microbatch_per_dp_rank=32768, max_context_length=" +
         length + "))\n";
}

Imported of_python(const std::string& text, const ImportRequest& request) {
  return import_torchtitan_settings(python_configuration(text, "c.py", request, false), "c.py", request, 32);
}

TEST(TypedValues, OfTorchtitansRegistry) {
  const auto read = [](const std::string& length) {
    ImportRequest request;
    request.gpus = 8;
    request.shell.arguments = {"llama3_8b"};
    return of_python(registry(length), request);
  };
  EXPECT_EQ(read("32768 // 2").scenario["plan"]["seq"], 16384);
  EXPECT_THAT(refusal([&] { read("16384 / 2"); }),
              AllOf(HasSubstr("training.max_context_length"), HasSubstr("must be an int from 1"),
                    HasSubstr("8192.0"), HasSubstr("nearest legal: 8192")));
  for (const char* wrong : {"32768.0", "\"32768\"", "None", "True", "[32768]", "-1"})
    EXPECT_THAT(refusal([&] { read(wrong); }), HasSubstr("must be an int from 1")) << wrong;
}

TEST(TypedValues, AreConvertedAsTheProgramDoes) {
  const auto seq = [](const std::string& keys) {
    return read_launch("x.yaml", keys).scenario["plan"].value("seq", 0);
  };
  const std::string axolotl = "base_model: x\nmicro_batch_size: 1\nsequence_len: ";
  EXPECT_EQ(seq(axolotl + "\"8192\""), 8192) << "pydantic";
  EXPECT_EQ(seq(axolotl + "8192.0"), 8192) << "pydantic";
  const std::string trl = "model_name_or_path: x\nper_device_train_batch_size: 1\nmax_length: ";
  EXPECT_EQ(seq(trl + "\"8192\""), 8192) << "argparse converts defaults that are texts";
  EXPECT_THAT(refusal([&] { seq(trl + "8192.0"); }), HasSubstr("nearest legal: 8192"));
  const std::string factory =
      "model_name_or_path: x\ntemplate: y\nper_device_train_batch_size: 1\ncutoff_len: ";
  EXPECT_THAT(refusal([&] { seq(factory + "\"8192\""); }), HasSubstr("must be an integer"));
  EXPECT_THAT(refusal([&] { megatron(kShape + "--tensor-model-parallel-size False"); }),
              HasSubstr("must be an integer"));
}

Imported of_registry(const std::string& settings) {
  ImportRequest request;
  request.gpus = 8;
  request.shell.arguments = {"llama3_8b"};
  return of_python(
      "from torchtitan.trainer import Trainer\ndef llama3_8b():\n  return Trainer.Config(\n"
      "    model_spec=model_registry(\"8B\"),\n    training=TrainingConfig(local_batch_size=1, "
      "seq_len=8192),\n"
      "    " +
          settings + ")\n",
      request);
}

// torchtitan 114151ad4 of 23 March 2026 removed selective_ac_option.
TEST(Approximated, SelectiveRecomputeOfARegistryIsByOperation) {
  const Imported found = of_registry("activation_checkpoint=ActivationCheckpointConfig(mode=\"selective\")");
  EXPECT_EQ(found.scenario["plan"]["recompute"], "op");
  EXPECT_THAT(found.notes, Contains(HasSubstr("recompute by operation is assumed")));
  const Imported layers = of_registry(
      "activation_checkpoint=ActivationCheckpointConfig(mode=\"selective\", selective_ac_option=\"2\")");
  EXPECT_EQ(layers.scenario["plan"]["recompute_num_layers"], 16);
}

TEST(Approximated, RematPoliciesAreReadByTheActivationsThatTheyKeep) {
  const auto plan = [](const std::string& policy) {
    return read_launch("x.yaml", "base_config: base.yml\nper_device_batch_size: 4\nremat_policy: " + policy)
        .scenario["plan"];
  };
  EXPECT_EQ(plan("full")["recompute"], "full");
  EXPECT_EQ(plan("minimal")["recompute_modules"], "layernorm,core_attn");
  EXPECT_EQ(plan("minimal_with_context")["recompute_modules"], "layernorm");
  EXPECT_EQ(plan("save_dot_with_context_except_mlp")["recompute_modules"], "layernorm,mlp");
  EXPECT_EQ(plan("save_dot_except_mlp")["recompute_modules"], "layernorm,core_attn,mlp");
  EXPECT_EQ(plan("save_out_proj")["recompute"], "full");
  const std::string custom = "custom\nquery_proj: device\nkey_proj: device\ncontext: device\nmlpwi: device";
  EXPECT_EQ(plan(custom)["recompute_modules"], "layernorm");
  EXPECT_THAT(refusal([&] { plan("save_dot_excpt_mlp"); }), HasSubstr("nearest legal: save_dot_except_mlp"));
}

// Words of a row that no change knows would be an error of the program.
TEST(Approximated, RowsOfTablesStateTheirChanges) {
  int stated = 0;
  for (const MegatronOption& option : megatron_options())
    stated += changes_of(option.changes).empty() ? 0 : 1;
  EXPECT_GT(stated, 60);
  const auto omitted = [](const std::string& name, const std::string& text) {
    std::string words;
    for (const OmittedEffect& effect : read_launch(name, text).omitted)
      words += effect.option + ": " + join(effect.changes) + "\n";
    return words;
  };
  const std::string axolotl = "base_model: x\nmicro_batch_size: 1\n";
  EXPECT_EQ(omitted("x.yaml", axolotl + "adapter: qlora\nload_in_4bit: true\n"),
            "adapter qlora: less memory, less time\nload_in_4bit: less memory, more time\n");
  EXPECT_EQ(omitted("x.yaml", axolotl + "optimizer: adamw_bnb_8bit\n"),
            "optimizer adamw_bnb_8bit: less memory\n");
  EXPECT_EQ(omitted("x.yaml", axolotl + "optimizer: adamw_torch\n"), "");
  EXPECT_EQ(omitted("ds.json", R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})"),
            "zero_optimization/offload_param: less memory, more time\n");
  EXPECT_EQ(omitted("x.sh", "pretrain_gpt.py " + kShape + "--lora-rank 16 --bf16"),
            "--lora-rank 16: less memory, less time\n");
}

}  // namespace
}  // namespace rehearse
