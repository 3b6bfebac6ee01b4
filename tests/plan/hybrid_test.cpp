// Hybrid models: layers of one part each, state spaces, experts of a latent width, modules with layers of
// their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "work_case.h"

namespace rehearse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kRow = 256, kLength = 512, kWords = 1024;

Model hybrid(const std::string& pattern) {
  Model model = llama(static_cast<std::int64_t>(pattern.size()), kRow, 8, 4, 512, kWords);
  model.name = "hybrid";
  model.pattern = pattern;
  model.positions = Positions::none;
  model.gated_mlp = false;
  model.squared_relu = true;
  model.state_space = StateSpace{16, 32, 4, 64, 4, 128};
  Experts experts;
  experts.count = 8;
  experts.per_token = 2;
  experts.ffn_hidden = 128;
  experts.shared_ffn_hidden = 64;
  experts.router_bias = true;
  model.experts = experts;
  return model;
}

Case hybrid_case(const std::string& pattern) {
  Case c{hybrid(pattern), {}};
  c.plan.seq = kLength;
  return c;
}

std::vector<std::string> names_of(const Block& block, const std::vector<TensorId>& ids) {
  std::vector<std::string> names;
  for (const TensorId id : ids) names.push_back(block.tensors[static_cast<std::size_t>(id)].name);
  return names;
}

TEST(Hybrid, LayersOfOneTypeAreOneBlock) {
  const Work work = make_work(hybrid_case("MM*-MEE").model, hybrid_case("MM*-MEE").plan);
  std::vector<std::pair<std::string, std::int64_t>> runs;
  for (const Repeated& part : work.parts.front())
    runs.emplace_back(work.blocks[static_cast<std::size_t>(part.block)].name, part.repeats);
  EXPECT_THAT(runs,
              ElementsAre(std::pair("embedding", 1), std::pair("mamba_layer", 2),
                          std::pair("attention_layer", 1), std::pair("mlp_layer", 1),
                          std::pair("mamba_layer", 1), std::pair("expert_layer", 2), std::pair("head", 1)));
  EXPECT_EQ(work.blocks.size(), 6U) << "both runs of Mamba share a block";
}

TEST(Hybrid, RanksHoldWhatTheModelCounts) {
  for (const char* pattern : {"M", "*", "-", "E", "MM*-MEE"}) {
    const Case c = hybrid_case(pattern);
    EXPECT_EQ(parameters_on_all_stages(c), double(count_parameters(c.model).total)) << pattern;
  }
}

// Each rank has its heads, with their groups, their part of the norm behind the scan, and the norm before it.
TEST(Hybrid, TensorParallelRanksShareTheStateSpaceOut) {
  Case c = hybrid_case("M");
  c.plan.tp = c.plan.global_batch = 2;
  c.plan.dp = 1;
  const double replicated = 2 * kRow;  // the layer's norm and the last
  EXPECT_EQ(2 * parameters_on_all_stages(c), double(count_parameters(c.model).total) + replicated);
}

TEST(Hybrid, TwoLayersOfOnePartCountAsOneOfBoth) {
  Model transformer = hybrid("*-");
  transformer.pattern.clear();
  transformer.layers = 1;
  transformer.experts.reset();
  EXPECT_EQ(count_parameters(hybrid("*-")).total, count_parameters(transformer).total);
  const auto forward = [](const Model& model) {
    Plan plan;
    plan.seq = kLength;
    return count_flops(make_work(model, plan), plan).forward;
  };
  EXPECT_EQ(forward(hybrid("*-")), forward(transformer));
}

// Dao and Gu 2024, section 6: scores and their GEMM with the inputs over squares of a chunk, states in and
// out of it.
TEST(Hybrid, MambaLayerMultipliesWhatItsEquationsSay) {
  const Case c = hybrid_case("M");
  const Block block = block_called(make_work(c.model, c.plan), "mamba_layer");
  const double inner = 16 * 32, maps = 2 * 4 * 64, chunk = 128, state = 64;
  const double projections = 2.0 * kLength * kRow * (2 * inner + maps + 16) + 2.0 * kLength * inner * kRow;
  const double scan = 2.0 * kLength * (chunk * (maps / 2 + inner) + 2 * inner * state);
  double forward = 0;
  for (const Kernel& kernel : block.forward) forward += flops(kernel);
  EXPECT_DOUBLE_EQ(forward, projections + scan);
  const FlopCount count = count_flops(make_work(c.model, c.plan), c.plan);
  EXPECT_DOUBLE_EQ(count.backward, 2 * count.forward);
  EXPECT_DOUBLE_EQ(count.rescore, 2.0 * kLength * (chunk * (maps / 2 + inner) + inner * state));
}

// The convolution's output is recomputed. The scan's output is kept before and after its gate.
TEST(Hybrid, MambaLayerKeepsWhatItsKernelsSave) {
  const Case c = hybrid_case("M");
  const Block block = block_called(make_work(c.model, c.plan), "mamba_layer");
  EXPECT_THAT(names_of(block, block.saved),
              testing::UnorderedElementsAre("input", "mamba_input_norm_output", "mamba_gate", "mamba_input",
                                            "mamba_steps", "scan_output", "ungated", "mamba_norm_output"));
}

TEST(Hybrid, MambaCopiesItsRowsWhereSequencesAreSeveral) {
  Case c = hybrid_case("M");
  const auto copies = [&] {
    const Block block = block_called(make_work(c.model, c.plan), "mamba_layer");
    return std::ranges::count_if(block.forward, [](const Kernel& kernel) {
      return std::holds_alternative<Pointwise>(kernel.what) &&
             std::get<Pointwise>(kernel.what) == Pointwise::rearrange;
    });
  };
  EXPECT_EQ(copies(), 0);
  c.plan.micro_batch = c.plan.global_batch = 2;
  EXPECT_EQ(copies(), 2);
}

// All inputs of a rank's scan are sent once, and its outputs come back. Each rank has fewer heads and more
// tokens.
TEST(Hybrid, ContextParallelRanksExchangeHeadsForTokens) {
  Case c = hybrid_case("M");
  c.plan.cp = 2;
  const Block block = block_called(make_work(c.model, c.plan), "mamba_layer");
  const double tokens = kLength / 2, inner = 16 * 32, maps = 2 * 4 * 64;
  const auto bytes = [&](const char* name) {
    return std::get<Collective>(kernel_called(block.forward, name).what).bytes;
  };
  EXPECT_EQ(bytes("mamba_all_to_all"), 2 * tokens * (2 * inner + maps + 16));
  EXPECT_EQ(bytes("scanned_all_to_all"), 2 * tokens * inner);
  const Scan scan = std::get<Scan>(kernel_called(block.forward, "scan").what);
  EXPECT_EQ(scan.tokens, kLength);
  EXPECT_EQ(scan.heads, 8);
  EXPECT_EQ(scan.groups, 2);
}

TEST(Hybrid, ExpertsOfALatentWidthSendNarrowRows) {
  Case c = hybrid_case("E");
  c.plan.ep = c.plan.dp = c.plan.global_batch = 4;
  const auto sent = [&] {
    const Block block = block_called(make_work(c.model, c.plan), "expert_layer");
    return std::get<Collective>(kernel_called(block.forward, "dispatch").what).bytes;
  };
  const double wide = sent();
  c.model.experts->latent = kRow / 4;
  EXPECT_EQ(sent(), wide / 4);
  const Block block = block_called(make_work(c.model, c.plan), "expert_layer");
  EXPECT_EQ(flops(kernel_called(block.forward, "latent_down")), 2.0 * kLength * kRow * kRow / 4);
  EXPECT_EQ(flops(kernel_called(block.forward, "latent_up")), 2.0 * kLength * kRow * kRow / 4);
  EXPECT_EQ(flops(kernel_called(block.forward, "shared_up")), 2.0 * kLength * kRow * 64) << "sees whole rows";
}

TEST(Hybrid, ModuleHasLayersOfItsOwnAndRunsAgainAsItself) {
  Case c = hybrid_case("MM");
  c.model.mtp_layers = 2;
  c.model.mtp_pattern = "*E";
  EXPECT_EQ(parameters_on_all_stages(c), double(count_parameters(c.model).total));
  const double apart = parameters_on_all_stages(c);
  c.model.mtp_repeated = true;
  EXPECT_EQ(parameters_on_all_stages(c), double(count_parameters(c.model).total));
  EXPECT_EQ(apart - parameters_on_all_stages(c), double(count_parameters(c.model).mtp));
  const Block module = block_called(make_work(c.model, c.plan), "further_mtp");
  EXPECT_NO_THROW(kernel_called(module.forward, "attention"));
  EXPECT_NO_THROW(kernel_called(module.forward, "experts_up"));
}

TEST(Hybrid, RulesNameGroupsChunksAndWhoRunsThem) {
  Case c = hybrid_case("M*");
  EXPECT_EQ(broken(c), "");
  c.plan.tp = 8;
  EXPECT_THAT(broken(c), HasSubstr("tp: tp must divide the groups of the state space; tp = 4"));
  c.plan.tp = 2;
  c.plan.cp = 4;
  EXPECT_THAT(broken(c), HasSubstr("cp: cp must divide the groups of the state space; cp = 2"));
  c = hybrid_case("M*");
  c.plan.seq = 200;
  EXPECT_THAT(broken(c),
              HasSubstr("seq: the sequence must be a multiple of the state space's chunk; seq = 128 or 256"));
  c = hybrid_case("M*");
  c.plan.framework = Framework::fsdp;
  EXPECT_THAT(broken(c),
              HasSubstr("framework: hybrid models need framework megatron-core; framework = megatron-core"));
  c = hybrid_case("ME");
  c.plan.overlap_experts = true;
  EXPECT_THAT(broken(c), HasSubstr("overlap_experts: overlap of experts does not support hybrid models"));
}

TEST(Hybrid, GraphsHoldModulesOfItsLayers) {
  Case c = hybrid_case("M-");
  c.plan.cuda_graph = true;
  c.plan.cuda_graph_modules = {GraphModule::mamba, GraphModule::mlp};
  EXPECT_EQ(broken(c), "");
  c.plan.cuda_graph_modules = {GraphModule::attn};
  EXPECT_THAT(broken(c), HasSubstr("names a module that no layer of the model has"));
  EXPECT_TRUE(graphed_parts(c.plan)[static_cast<std::size_t>(LayerPart::attention)]);
  EXPECT_FALSE(graphed_parts(c.plan)[static_cast<std::size_t>(LayerPart::mamba)]);
}

}  // namespace
}  // namespace rehearse
