// TOML files of torchtitan as scenarios; data/README.md names the samples.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "frameworks/imported.h"
#include "samples.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ImportTorchtitan, ListsTheKeysOfTheFileAndNoOthers) {
  const Imported found = import_torchtitan(
      "[model]\nname = \"llama3\"\nconverters = [\"npu_rms_norm\"]\n[training]\ntensor_parallel_degree = 2\n"
      "dataset_name = \"own\"\n[quantize.linear.float8]\nfilter_fqns = [\"output\"]\nemulate = false\n",
      "x.toml", 8, 32);
  std::set<std::string> names;
  for (const ImportedOption& option : found.options) names.insert(option.name);
  EXPECT_EQ(names, (std::set<std::string>{"model/name", "model/converters", "training/tensor_parallel_degree",
                                          "training/dataset_name", "quantize/linear/float8/filter_fqns",
                                          "quantize/linear/float8/emulate"}));
  EXPECT_EQ(fate_of(found, "training/dataset_name"), "unknown") << "like dataset_path, which costs nothing";
  EXPECT_THAT(found.notes, testing::Contains(testing::HasSubstr("npu_rms_norm is ignored")));
  EXPECT_EQ(found.scenario["plan"]["precision"], "bf16");
  EXPECT_EQ(found.scenario["plan"]["tp"], 2);
}

TEST(ImportTorchtitan, ReadsTheSampleOfLlama3) {
  const Imported found = import_torchtitan(text_of("llama3_70b.toml"), "llama3_70b.toml", 256, 80);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(found.scenario["model"], "llama3-70b");
  EXPECT_EQ(plan["tp"], 8);
  EXPECT_EQ(plan["dp"], 32);
  EXPECT_EQ(plan["zero"], 3);
  EXPECT_EQ(plan["micro_batch"], 8);
  EXPECT_EQ(plan["global_batch"], 8 * 32);
  EXPECT_EQ(plan["seq"], 8192);
  EXPECT_EQ(plan["recompute"], "full");
  EXPECT_EQ(plan["fused_rotary"], false);  // it is not compiled
  EXPECT_EQ(plan["fused_activation"], false);
  EXPECT_EQ(plan["fused_cross_entropy"], false);
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(ImportTorchtitan, ReadsPipelinesAndHybridSharding) {
  const Imported found = import_torchtitan(R"([model]
name = "llama3"
flavor = "405B"
converters = ["float8"]
[training]
local_batch_size = 16
global_batch_size = 128
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "ZBVZeroBubble"
pipeline_parallel_microbatch_size = 2
fsdp_reshard_after_forward = "never"
[quantize.linear.float8]
recipe_name = "rowwise"
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
)",
                                           "pp.toml", 0, 0);
  const Json& plan = found.scenario["plan"];
  EXPECT_EQ(plan["schedule"], "zb-v");
  EXPECT_EQ(plan["micro_batch"], 2);
  EXPECT_EQ(plan["global_batch"], 128);
  EXPECT_EQ(plan["dp"], 8);
  EXPECT_EQ(plan["zero_shard"], 4);
  EXPECT_EQ(plan["reshard_after_forward"], false);
  EXPECT_EQ(plan["precision"], "fp8");
  EXPECT_EQ(plan["fp8_scaling"], "row");
  EXPECT_EQ(plan["recompute"], "op");
}

TEST(ImportTorchtitan, ReadsWhatDispatchesRows) {
  const auto plan = [](const std::string& text) {
    return import_torchtitan("[parallelism]\n" + text, "experts.toml", 8, 0).scenario["plan"];
  };
  EXPECT_EQ(plan("expert_parallel_degree = 8\nexpert_parallel_comm_backend = \"deepep\"\n")["moe_dispatcher"],
            "deepep");
  EXPECT_FALSE(plan("expert_parallel_comm_backend = \"deepep\"\n").contains("moe_dispatcher"));
  EXPECT_FALSE(plan("expert_parallel_degree = 8\nexpert_parallel_comm_backend = \"standard\"\n")
                   .contains("moe_dispatcher"));
}

TEST(ImportTorchtitan, ItsAllToAllIsARing) {
  const auto exchange = [](const std::string& method) {
    return import_torchtitan(
               "[parallelism]\ncontext_parallel_degree = 4\ncontext_parallel_rotate_method = \"" + method +
                   "\"\n",
               "cp.toml", 8, 0)
        .scenario["plan"]["cp_comm_type"];
  };
  EXPECT_EQ(exchange("alltoall"), "p2p");
  EXPECT_EQ(exchange("allgather"), "allgather");
}

// torchtitan reads enable_async_tensor_parallel only with tensor parallelism, and then needs a compiled
// model.
TEST(ImportTorchtitan, AsynchronousTensorParallelismIsCompiled) {
  const auto text = [](int tp, bool compiled) {
    return fmt::format(
        "[parallelism]\ntensor_parallel_degree = {}\nenable_async_tensor_parallel = true\n"
        "[compile]\nenable = {}\n",
        tp, compiled);
  };
  EXPECT_EQ(import_torchtitan(text(8, true), "async.toml", 8, 0).scenario["plan"]["tp_comm_overlap"], true);
  EXPECT_FALSE(
      import_torchtitan(text(1, false), "async.toml", 8, 0).scenario["plan"].contains("tp_comm_overlap"));
  EXPECT_THAT(refusal([&] { import_torchtitan(text(8, false), "async.toml", 8, 0); }),
              AllOf(HasSubstr("/parallelism/enable_async_tensor_parallel"), HasSubstr("compile.enable")));
}

Json stages_of(const std::string& keys, std::int64_t layers) {
  return import_torchtitan("[parallelism]\npipeline_parallel_degree = 4\n" + keys, "pp.toml", 8, layers)
      .scenario["plan"];
}

// 32 layers, embedding and head take 34 places: 9, 9, 8 and 8. The first and the last stage have one layer
// fewer.
TEST(ImportTorchtitan, CutsStagesAsItDoes) {
  Json plan = stages_of("", 32);
  EXPECT_EQ(plan["layers_per_stage"], Json({8, 9, 8, 7}));
  EXPECT_EQ(plan["vpp"], 1);
  const std::string even =
      "pipeline_parallel_first_stage_less_layers = 0\npipeline_parallel_last_stage_less_layers = 0\n";
  plan = stages_of(even, 32);
  EXPECT_FALSE(plan.contains("layers_per_stage"));
  const std::string interleaved = "pipeline_parallel_schedule = \"Interleaved1F1B\"\n";
  EXPECT_EQ(stages_of(even + interleaved, 32)["vpp"], 2);
  EXPECT_EQ(stages_of(even + interleaved + "pipeline_parallel_layers_per_stage = 2\n", 32)["vpp"], 4);
  EXPECT_EQ(stages_of(interleaved, 0)["vpp"], 2) << "of a model that is not known";
  EXPECT_THAT(refusal([&] { stages_of("pipeline_parallel_layers_per_stage = 2\n", 32); }),
              AllOf(HasSubstr("pipeline_parallel_layers_per_stage"), HasSubstr("one stage")));
  EXPECT_THAT(refusal([&] { stages_of("", 1); }),
              AllOf(HasSubstr("a layer's place"), HasSubstr("nearest legal: 3")));
  EXPECT_THAT(refusal([&] { stages_of(even, 2); }), HasSubstr("nearest legal: 2"));
}

TEST(ImportTorchtitan, TakesNoMoreRanksThanAPlan) {
  const auto ranks = [](const std::string& number) {
    return refusal([&] {
      import_torchtitan("[parallelism]\npipeline_parallel_degree = " + number +
                            "\npipeline_parallel_first_stage_less_layers = 0\n"
                            "pipeline_parallel_last_stage_less_layers = 0\n",
                        "pp.toml", 8, 32);
    });
  };
  EXPECT_THAT(ranks("1048576"), HasSubstr("nearest legal: 32"));
  EXPECT_THAT(ranks("1048577"), HasSubstr("pipeline_parallel_degree"));
}

TEST(ImportTorchtitan, ReadsWhichModulesStandInWhichStage) {
  const std::string four =
      "module_fqns_per_model_part = [[\"tok_embeddings\", \"layers.0\"], [\"layers.1\", \"layers.2\"], [], "
      "[\"norm\", \"output\"]]\n";
  EXPECT_EQ(stages_of(four, 0)["layers_per_stage"], Json({1, 2, 0, 0}));
  EXPECT_EQ(stages_of(four, 0)["vpp"], 1);
  for (const char* other : {"[]", "[[\"norm\"]]", "[1, 2, 3, 4]", "\"layers.0\""})
    EXPECT_THAT(refusal([&] { stages_of(std::string("module_fqns_per_model_part = ") + other + "\n", 0); }),
                HasSubstr("modules of each stage"))
        << other;
}

TEST(ImportTorchtitan, ReadsWhichLayersRunAgain) {
  const auto plan = [](const std::string& option, std::int64_t layers) {
    return import_torchtitan("[activation_checkpoint]\nmode = \"selective\"\n" + option, "ac.toml", 8, layers)
        .scenario["plan"];
  };
  EXPECT_EQ(plan("selective_ac_option = \"3\"\n", 32)["recompute_num_layers"], 10);
  EXPECT_EQ(plan("", 32)["recompute_num_layers"], 16) << "every second one unless told otherwise";
  EXPECT_EQ(plan("", 32)["recompute_method"], "block");
  EXPECT_FALSE(plan("", 0).contains("recompute"));
  EXPECT_EQ(plan("selective_ac_option = \"op\"\n", 0)["recompute"], "op");
}

TEST(ImportTorchtitan, ReadsInWhichPrecisionStateIsAndThatContextDividesIt) {
  const auto plan = [](const std::string& text) {
    return import_torchtitan(text, "cp.toml", 8, 32).scenario["plan"];
  };
  EXPECT_EQ(plan("[training]\ndtype = \"bfloat16\"\n")["recipe"], "bf16");
  EXPECT_FALSE(plan("[training]\ndtype = \"float32\"\n").contains("recipe"));
  const std::string two =
      "[parallelism]\ndata_parallel_replicate_degree = 4\ndata_parallel_shard_degree = 1\n";
  EXPECT_EQ(plan(two)["zero"], 0);
  EXPECT_EQ(plan(two + "context_parallel_degree = 2\n")["zero"], 3);
  EXPECT_EQ(plan(two + "context_parallel_degree = 2\n")["zero_shard"], 2);
}

TEST(ImportTorchtitan, RefusesWhatItDoesNotKnow) {
  const auto read = [](const char* text) {
    return refusal([&] { import_torchtitan(text, "bad.toml", 8, 0); });
  };
  EXPECT_THAT(read("[parallelism\n"), AllOf(HasSubstr("bad.toml: line"), HasSubstr("TOML")));
  EXPECT_THAT(read("[parallelism]\ntensor_paralel_degree = 8\n"), HasSubstr("tensor_parallel_degree"));
  EXPECT_THAT(read("[paralelism]\n"), HasSubstr("parallelism"));
  EXPECT_THAT(read("[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1F1C\"\n"),
              HasSubstr("1F1B"));
  EXPECT_THAT(read("[activation_checkpoint]\nmode = \"some\"\n"), HasSubstr("mode"));
}

}  // namespace
}  // namespace rehearse
