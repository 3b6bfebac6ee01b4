// Our own format: layers as a list of patterns of named blocks.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <set>

#include "base/text_file.h"
#include "config_file.h"
#include "json_schema.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

// Llama 3 8B, with windows in three of four layers.
Json windowed_list() {
  return Json::parse(R"json({"model_type": "block_list", "hidden_size": 4096, "vocab_size": 128256,
    "blocks": {"local": {"kind": "attention", "num_attention_heads": 32, "num_key_value_heads": 8,
                         "sliding_window": 1024},
               "global": {"kind": "attention", "num_attention_heads": 32, "num_key_value_heads": 8},
               "mlp": {"kind": "mlp", "intermediate_size": 14336}},
    "layers": [{"repeat": 8, "pattern": ["local+mlp", "local+mlp", "local+mlp", "global+mlp"]}]})json");
}

// Every key of every kind, in as many files as it takes: a model has one kind of attention or recurrence.
std::vector<Json> whole_lists() {
  Json first = windowed_list();
  first.merge_patch(Json::parse(R"json({"name": "all", "tie_word_embeddings": true,
    "max_position_embeddings": 4096, "position_embedding_type": "learned_absolute", "position_offset": 2,
    "normalization": "LayerNorm", "norm_place": "before", "embedding_norm": true, "activation": "gelu",
    "parallel_residual": true, "head_bias": true, "dropout": 0.1})json"));
  for (const char* name : {"local", "global"}) {
    Json& block = first["blocks"][name];
    block["head_dim"] = 128;
    block["qk_norm_span"] = "all heads";
    for (const char* key : {"qkv_bias", "attention_out_bias", "attention_sinks", "attention_gate"})
      block[key] = true;
  }
  first["blocks"]["mlp"]["mlp_bias"] = true;
  const auto list = [](const char* blocks, const char* layers) {
    Json json = {{"model_type", "block_list"}, {"hidden_size", 512}, {"vocab_size", 1024}};
    json["blocks"] = Json::parse(blocks);
    json["layers"] = Json::parse(layers);
    return json;
  };
  const char* delta =
      R"json({"latent": {"kind": "latent_attention", "num_attention_heads": 8, "q_lora_rank": 64,
      "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32},
    "delta": {"kind": "gated_delta_rule", "linear_num_key_heads": 4, "linear_num_value_heads": 8,
      "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4},
    "experts": {"kind": "experts", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
      "shared_expert_intermediate_size": 128, "shared_expert_gate": true, "router_bias": true,
      "moe_linear_bias": true, "swiglu_limit": 7}})json";
  const char* lightning = R"json({"attention": {"kind": "attention", "num_attention_heads": 8},
    "lightning": {"kind": "lightning_attention", "block_size": 128},
    "mlp": {"kind": "mlp", "intermediate_size": 512}})json";
  const char* mamba1 =
      R"json({"mamba": {"kind": "mamba1", "mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4,
    "mamba_dt_rank": 32, "inner_norms": true}, "mlp": {"kind": "mlp", "intermediate_size": 512}})json";
  const char* mamba2 = R"json({"mamba": {"kind": "mamba2", "mamba_n_heads": 16, "mamba_d_head": 32,
    "mamba_n_groups": 4, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_chunk_size": 128},
    "mlp": {"kind": "mlp", "intermediate_size": 512}})json";
  return {first, list(delta, R"json([{"repeat": 2, "pattern": ["delta+experts", "latent+experts"]}])json"),
          list(lightning, R"json([{"pattern": ["lightning+mlp", "attention+mlp"]}])json"),
          list(mamba1, R"json([{"pattern": ["mamba+mlp"]}])json"),
          list(mamba2, R"json([{"pattern": ["mamba", "mlp", "mamba+mlp"]}])json")};
}

TEST(BlockList, ReadsAsTheConfigOfTheSameModelDoes) {
  const Model listed = read_config(windowed_list());
  const Model llama = read_config(llama_config());
  EXPECT_EQ(count_parameters(listed).total, count_parameters(llama).total);
  EXPECT_EQ(listed.layers, 32);
  EXPECT_EQ(listed.heads, 32);
  EXPECT_EQ(listed.kv_heads, 8);
  EXPECT_EQ(listed.head_dim, 128);
  EXPECT_EQ(listed.window, 1024);
  EXPECT_EQ(listed.full_every, 4);
  EXPECT_TRUE(listed.gated_mlp);
}

// Qwen3-Next's shapes (transformers, Qwen3NextConfig).
TEST(BlockList, ReadsARecurrenceWithExperts) {
  const Json list = Json::parse(R"json({"model_type": "block_list", "hidden_size": 2048, "vocab_size": 151936,
    "blocks": {
      "delta": {"kind": "gated_delta_rule", "linear_num_key_heads": 16, "linear_num_value_heads": 32,
                "linear_key_head_dim": 128, "linear_value_head_dim": 128},
      "attention": {"kind": "attention", "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
                    "attention_gate": true, "qk_norm_span": "head"},
      "experts": {"kind": "experts", "num_experts": 512, "num_experts_per_tok": 10,
                  "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
                  "shared_expert_gate": true}},
    "layers": [{"repeat": 12, "pattern": ["delta+experts", "delta+experts", "delta+experts",
                                          "attention+experts"]}]})json");
  const Json config = {{"model_type", "qwen3_next"},
                       {"hidden_size", 2048},
                       {"vocab_size", 151936},
                       {"num_hidden_layers", 48},
                       {"num_attention_heads", 16}};
  const Model listed = read_config(list), known = read_config(config);
  EXPECT_EQ(count_parameters(listed).total, count_parameters(known).total);
  EXPECT_EQ(listed.recurrent, known.recurrent);
  EXPECT_EQ(listed.attention_gate, known.attention_gate);
}

TEST(BlockList, SplitsLayersBesideAStateSpace) {
  const Model model = read_config(whole_lists().back());
  EXPECT_EQ(model.pattern, "M-M-");
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.state_space->groups, 4);
}

TEST(BlockList, BlocksOfOneKindMayDifferInSize) {
  Json list = windowed_list();
  const std::int64_t before = count_parameters(read_config(list)).total;
  list["blocks"]["global"].merge_patch(
      {{"num_attention_heads", 16}, {"num_key_value_heads", 4}, {"head_dim", 512}});
  list["blocks"]["wide"] = {{"kind", "mlp"}, {"intermediate_size", 28672}};
  list["layers"][0]["pattern"][3] = "global+wide";
  const Model model = read_config(list);
  ASSERT_EQ(model.shapes.size(), 1u);
  EXPECT_EQ(model.shape_of(3), 1);
  EXPECT_EQ(model.shape_of(4), 0);
  EXPECT_EQ(model.shapes[0].kv_heads, 4);
  const std::int64_t attention = 4096 * 2 * ((16 + 4) * 512 - (32 + 8) * 128), mlp = 3 * 4096 * 14336;
  EXPECT_EQ(count_parameters(model).total - before, 8 * (attention + mlp));
}

TEST(BlockList, ErrorsNamePlaceAndRule) {
  const auto complaint_of = [](const char* place, const Json& value) {
    Json list = windowed_list();
    list[Json::json_pointer(place)] = value;
    return complaint(list.dump());
  };
  for (const char* block : {"global", "local"}) {
    const std::string place = fmt::format("/blocks/{}/qkv_bias", block);
    EXPECT_THAT(complaint_of(place.c_str(), true), HasSubstr(place + ": must be in every block"));
  }
  EXPECT_THAT(complaint_of("/blocks/mlp/intermediate_size", 0), HasSubstr("/blocks/mlp/intermediate_size"));
  EXPECT_THAT(complaint_of("/blocks/mlp/width", 1), HasSubstr("/blocks/mlp/width: must be one of"));
  EXPECT_THAT(complaint_of("/blocks/mlp/kind", "mpl"), HasSubstr("nearest legal: mlp"));
  EXPECT_THAT(complaint_of("/layers/0/pattern/1", "locl+mlp"), HasSubstr("nearest legal: local"));
  EXPECT_THAT(complaint_of("/layers/0/pattern/1", "mlp+local"), HasSubstr("at most one mixer, and then"));
  EXPECT_THAT(complaint_of("/layers/0/repeat", 5000), HasSubstr("/layers/0/repeat"));
  EXPECT_THAT(complaint_of("/hidden_sise", 1), HasSubstr("nearest legal: hidden_size"));
  Json mixed = windowed_list();
  mixed["blocks"]["delta"] = whole_lists()[1]["blocks"]["delta"];
  mixed["blocks"]["lightning"] = {{"kind", "lightning_attention"}};
  EXPECT_THAT(complaint(mixed.dump()), HasSubstr("a model has one kind of recurrence"));
}

TEST(BlockList, TheRefusalOfAnUnknownTypeNamesBothWays) {
  Json config = llama_config();
  config["model_type"] = "never_seen";
  EXPECT_THAT(complaint(config.dump()),
              testing::AllOf(HasSubstr("--as llama"), HasSubstr("model_type block_list")));
}

// Every place of an object or of a value, list elements aside but for those of objects.
void each_place(const Json& json, const Json::json_pointer& at,
                const std::function<void(const Json::json_pointer&)>& visit) {
  visit(at);
  if (json.is_object())
    for (const auto& [key, value] : json.items()) each_place(value, at / key, visit);
  if (json.is_array() && !json.empty() && json.front().is_object())
    for (std::size_t i = 0; i < json.size(); ++i) each_place(json[i], at / i, visit);
}

TEST(BlockListSchema, NamesTheKeysThatTheReaderReads) {
  const JsonSchema schema("model.schema.json");
  std::set<std::string> seen;
  for (const Json& list : whole_lists()) {
    ASSERT_EQ(complaint(list.dump()), "");
    EXPECT_EQ(schema.faults_of(list), "");
    each_place(list, Json::json_pointer(), [&](const Json::json_pointer& place) {
      if (place.empty()) return;
      seen.insert(place.back());
      if (place.back() == "name") return;
      Json wrong = list;
      wrong[place] = Json::array({Json::array()});  // no key holds a list of lists
      EXPECT_NE(complaint(wrong.dump()), "") << place.to_string() << " is not read";
      EXPECT_NE(schema.faults_of(wrong), "") << place.to_string();
      if (!list[place].is_object()) return;
      Json unknown = list;
      unknown[place]["hiden_size"] = 1;
      EXPECT_NE(complaint(unknown.dump()), "") << place.to_string();
      EXPECT_NE(schema.faults_of(unknown), "") << place.to_string();
    });
  }
  for (const auto& [key, value] : schema.json().at("properties").items())
    EXPECT_TRUE(seen.contains(key)) << key;
  for (const auto& kind : schema.json().at("/properties/blocks/additionalProperties/anyOf"_json_pointer))
    for (const auto& [key, value] : kind.at("properties").items()) EXPECT_TRUE(seen.contains(key)) << key;
}

// The page's example, as it stands there.
TEST(BlockListPage, ShowsAFileThatIsRead) {
  const std::string page = read_text_file(SOURCE_DIR "/docs/models.md", 1'000'000);
  const std::size_t begin = page.find("```json\n") + 8;
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  EXPECT_EQ(complaint(example), "");
  EXPECT_EQ(JsonSchema("model.schema.json").faults_of(Json::parse(example)), "");
  EXPECT_NE(page.find("5,027,172,352"), std::string::npos);
  EXPECT_EQ(count_parameters(read_model(write_config(example))).total, 5'027'172'352);
}

}  // namespace
}  // namespace rehearse
