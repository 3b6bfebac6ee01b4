// Values, sections and networks of YAML that could be read for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks/toml_text.h"
#include "frameworks/yaml_text.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(YamlValues, HaveOneKeyAndOneDocument) {
  EXPECT_THAT(refusal([] { read_yaml("a:\n  b: 1\n  c: 2\n  b: 3\n", "x.yaml"); }),
              AllOf(HasSubstr("line 4"), HasSubstr("key b of line 2")));
  EXPECT_EQ(read_yaml("b: 1\nb: 1\n", "x.yaml").json["b"], 1) << "the same value";
  EXPECT_EQ(read_yaml("a: &a {b: 1}\nc:\n  <<: *a\n  b: 2\n", "x.yaml").json["c"]["b"], 2);
  EXPECT_THAT(refusal([] { read_yaml("a: 1\n---\na: 2\n", "x.yaml"); }), HasSubstr("second document"));
  EXPECT_EQ(read_yaml("# top\n---  # one\na: 1\n...\n# end\n---\n", "x.yaml").json["a"], 1);
  EXPECT_EQ(read_yaml("--- {a: 1}\n", "x.yaml").json["a"], 1);
  EXPECT_EQ(read_yaml("---\na: 1\n---\n", "x.yaml").json["a"], 1);
}

TEST(YamlValues, OfMergesAndAliasesCountEachTime) {
  std::string text = "a0: &a0 {x: 1}\n";
  for (int i = 1; i < 6; ++i)
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + "\n  <<: [*a" + std::to_string(i - 1) +
            ", *a" + std::to_string(i - 1) + "]\n";
  EXPECT_EQ(read_yaml(text, "x.yaml").json["a5"]["x"], 1) << "a few are fine";
  EXPECT_THAT(refusal([] {
                read_yaml("a:\n- 1\n- b: " + std::string(80, '[') + std::string(80, ']') + "\n", "x.yaml");
              }),
              AllOf(HasSubstr("line 3"), HasSubstr("nests too deep"), HasSubstr("at most 64 levels")));
}

TEST(TomlText, NestsAsDeepAsAConfigurationDoes) {
  const auto json = [](const std::string& text) { return read_toml(text, "x.toml").json(); };
  EXPECT_EQ(json("[a.b]\nc.d = {e = [1.5, 2.5], f = 1979-05-27T07:32:00.5}\n")["a"]["b"]["c"]["d"]["e"][1],
            2.5);
  std::string lines = "[a]\nt = \"\"\"\n. . . ] } \\\" \n\"\"\"\nk = '.[{'\n";
  for (int i = 0; i < 200; ++i) lines += "v" + std::to_string(i) + " = [1.5,\n 2.5] # [[[...\n";
  EXPECT_EQ(json(lines)["a"]["v199"][0], 1.5) << "levels end with their line and bracket";
  EXPECT_THAT(refusal([] {
                read_toml(
                    "b = 1\n[x]\na" +
                        [] {
                          std::string dots;
                          for (int i = 0; i < 70; ++i) dots += ".a";
                          return dots;
                        }() +
                        " = 1\n",
                    "x.toml");
              }),
              AllOf(HasSubstr("line 3"), HasSubstr("nests too deep")));
}

TEST(YamlValues, OfOldOctalNumbers) {
  EXPECT_EQ(read_yaml("a: 010\nb: 08\nc: 0\nd: 0.5\ne: -010\n", "x.yaml").json,
            Json::parse(R"({"a": 8, "b": "08", "c": 0, "d": 0.5, "e": -8})"));
}

TEST(YamlValues, FollowRelativePaths) {
  const Json json =
      read_yaml(
          "a:\n  n: 4\n  b: {m: \"${..n}\", l: \"${.m}\", k: \"${...z}\", j: \"${....z}\"}\nz: 7\n"
          "c: {far: \"${a.b.l}\", near: \"${z}\"}\n",
          "x.yaml")
          .json;
  EXPECT_EQ(json["a"]["b"]["m"], 4);
  EXPECT_EQ(json["a"]["b"]["k"], 7);
  EXPECT_EQ(json["a"]["b"]["j"], "${....z}") << "beyond the file";
  EXPECT_EQ(json["c"]["near"], 7);
  EXPECT_EQ(json["c"]["far"], "${a.b.l}") << "a path that begins elsewhere stays open";
}

TEST(YamlValues, OfModelConfigTakeWords) {
  const std::string config =
      "MODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 256\n  --num-attention-heads: 4\n"
      "  --max-position-embeddings: 4096\n  --seq-length: ${SEQ_LEN:-4096}\n"
      "  --tensor-model-parallel-size: ${TP}\n";
  EXPECT_THAT(refusal([&] { read_launch("model_config.yaml", config); }), HasSubstr("TP=VALUE"));
  ImportRequest request;
  request.shell.variables["TP"] = "2";
  EXPECT_EQ(read_launch("model_config.yaml", config, request).scenario["plan"]["tp"], 2);
  EXPECT_EQ(read_launch("model_config.yaml", config, request).scenario["plan"]["seq"], 4096);
  request.shell.variables["SEQ_LEN"] = "1024";
  EXPECT_EQ(read_launch("model_config.yaml", config, request).scenario["plan"]["seq"], 1024);
}

TEST(YamlValues, OfOmegaConfTakeWords) {
  const std::string config =
      "model:\n  num_layers: 4\n  hidden_size: 256\n  num_attention_heads: 4\n  seq_length: 512\n"
      "  tensor_model_parallel_size: ${oc.env:TP,4}\n  pipeline_model_parallel_size: "
      "${oc.decode:${oc.env:PP,\"2\"}}\ntrain:\n  micro_batch_size: ${oc.env:MBS}\n";
  EXPECT_THAT(refusal([&] { read_launch("x.yaml", config); }),
              AllOf(HasSubstr("MBS=VALUE"), Not(HasSubstr("oc="))));
  ImportRequest request;
  request.shell.variables = {{"MBS", "3"}, {"PP", "4"}};
  const Json plan = read_launch("x.yaml", config, request).scenario["plan"];
  EXPECT_EQ(plan["tp"], 4);
  EXPECT_EQ(plan["pp"], 4);
  EXPECT_EQ(plan["micro_batch"], 3);
}

std::string nemo_file(const std::string& name, const std::string& more = "") {
  return "name: " + name +
         "\ntrainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel:\n  num_layers: 4\n" +
         "  hidden_size: 256\n  num_attention_heads: 4\n  encoder_seq_length: 512\n  mcore_gpt: true\n" +
         more;
}

TEST(NemoNetworks, AreReadOrRefusedByName) {
  for (const char* name :
       {"megatron_griffin", "megatron_ul2", "megatron_t0", "megatron_mT5", "megatron_bert"})
    EXPECT_THAT(refusal([&] { read_launch("x.yaml", nemo_file(name)); }), HasSubstr("is no decoder")) << name;
  EXPECT_THAT(refusal([&] { read_launch("x.yaml", "run: {model_train_name: mt5_390m}\n" + nemo_file("x")); }),
              HasSubstr("is no decoder"));
  const Imported found = read_launch(
      "x.yaml", nemo_file("megatron_mamba", "  hybrid_override_pattern: null\n  mamba_ssm_ngroups: 4\n"));
  EXPECT_EQ(found.model["hybrid_override_pattern"], "MMMM");
  EXPECT_EQ(found.model["n_groups"], 4);
  EXPECT_EQ(read_launch("x.yaml", nemo_file("megatron_mamba", "  hybrid_override_pattern: M-M*\n"))
                .model["hybrid_override_pattern"],
            "M-M*");
  EXPECT_THAT(
      refusal([] { read_launch("x.yaml", nemo_file("megatron_mamba", "  hybrid_attention_ratio: 0.25\n")); }),
      HasSubstr("hybrid_override_pattern"));
}

TEST(NemoNetworks, PretrainWithoutTheDataOfFinetuning) {
  const std::string data =
      "  data:\n    fine_tuning: False\n    train_ds: {max_seq_length: 4096, micro_batch_size: 7}\n";
  EXPECT_EQ(read_launch("x.yaml", nemo_file("megatron_gpt", data)).scenario["plan"]["seq"], 512);
  std::string tuned = data;
  tuned.replace(tuned.find("False"), 5, "True");
  EXPECT_EQ(read_launch("x.yaml", nemo_file("megatron_gpt", tuned)).scenario["plan"]["seq"], 4096);
}

TEST(SwiftYaml, HasOneNetwork) {
  EXPECT_THAT(refusal([] {
                read_launch("x.yaml",
                            "hidden_size: 256\nencoder: {num_layers: 4}\ndecoder: {num_layers: 8}\n");
              }),
              HasSubstr("no decoder alone"));
  EXPECT_THAT(read_launch("x.yaml", "num_layers: 4\nhidden_size: 256\nmore: {num_layers: 8}\n").notes,
              Contains(AllOf(HasSubstr("num_layers gives way to more.num_layers of line 3"))));
  const Json plan =
      read_launch("x.yaml", "model: x\nrecompute_granularity: none\nmicro_batch_size: 1\n").scenario["plan"];
  EXPECT_FALSE(plan.contains("recompute")) << "off, and not ms-swift's default";
}

TEST(VerlDefaults, NameTheEngine) {
  const auto framework = [](const std::string& defaults) {
    const Imported found =
        read_launch("x.yaml", "defaults:\n" + defaults +
                                  "actor_rollout_ref:\n  actor: {ppo_micro_batch_size_per_gpu: 1}\n");
    return found.scenario["plan"]["framework"].get<std::string>();
  };
  EXPECT_EQ(framework("  - actor@actor_rollout_ref.actor: megatron_actor\n  - _self_\n"), "megatron-core");
  EXPECT_EQ(framework("  - actor@actor_rollout_ref.actor: dp_actor\n"), "fsdp1");
  EXPECT_EQ(
      framework("  - model_engine: megatron\n  - actor@actor_rollout_ref.actor: ${model_engine}_actor\n"),
      "megatron-core");
  EXPECT_EQ(framework("  - ppo_trainer\n  - override model_engine: megatron\n"), "megatron-core");
  EXPECT_EQ(framework("  - ppo_megatron_trainer\n"), "megatron-core");
  EXPECT_EQ(framework("  - ppo_trainer\n"), "fsdp1");
  EXPECT_THAT(refusal([&] { framework("  - actor@actor_rollout_ref.actor: veomni_actor\n"); }),
              HasSubstr("veomni"));
  EXPECT_EQ(
      read_launch(
          "run.sh",
          "python3 -m verl.trainer.main_ppo model_engine=megatron actor_rollout_ref.actor.use_kl_loss=True")
          .scenario["plan"]["framework"],
      "megatron-core");
}

}  // namespace
}  // namespace rehearse
