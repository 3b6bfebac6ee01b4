// A grid times the kernels that scenarios of its widths need.
#include "calibrate/timing/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "calibrate/timing/coverage.h"
#include "cost/price.h"

namespace rehearse {
namespace {

constexpr std::int64_t kWidest = 512;

Profile profile_of(const Jobs& jobs) {
  Profile profile;
  profile.name = "grid";
  profile.gpu.name = "H100-SXM5-80GB";
  for (const KernelJob& job : jobs.kernels) {
    const std::vector<double>& size = job.key.size;
    const auto whole = [&](std::size_t i) { return static_cast<std::int64_t>(size[i]); };
    if (job.key.table == SampleKey::Table::gemm)
      profile.gemm[job.key.name].push_back({whole(0), whole(1), whole(2), 1e-3, whole(3)});
    else if (job.key.table == SampleKey::Table::attention)
      profile.attention.push_back({whole(0), whole(1), size[2] > 0, size[3] > 0, 1e14});
    else
      profile.stream[job.key.name].push_back({size[0], 1e12});
  }
  return profile;
}

const Jobs& fp8_grid() {
  static const Jobs jobs = grid_jobs(Precision::fp8, kWidest);
  return jobs;
}

Model llama() {
  Model model;
  model.layers = 1;
  model.hidden = 512;
  model.heads = model.kv_heads = 8;
  model.head_dim = 64;
  model.ffn_hidden = 2048;
  model.vocab = 8192;
  model.max_positions = 1 << 15;
  return model;
}

Model gpt() {
  Model model = llama();
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
  return model;
}

Model sparse() {
  Model model = llama();
  model.experts = Experts{8, 2, 512};
  return model;
}

Plan fp8_plan(std::int64_t seq, Framework framework) {
  Plan plan;
  plan.precision = Precision::fp8;
  plan.seq = seq;
  plan.framework = framework;
  return plan;
}

std::vector<std::string> missing(const Model& model, const Plan& plan) {
  std::vector<std::string> names;
  for (const SampleKey& key : missing_of(profile_of(fp8_grid()), jobs_of(model, plan)).kernels)
    names.push_back(to_string(key));
  return names;
}

TEST(Fp8Grid, LacksNothingThatAScenarioOfItsWidthsAsksFor) {
  using testing::IsEmpty;
  for (const std::int64_t seq : {256, 1024, 4096}) {
    EXPECT_THAT(missing(llama(), fp8_plan(seq, Framework::megatron_core)), IsEmpty());
    EXPECT_THAT(missing(llama(), fp8_plan(seq, Framework::torchtitan)), IsEmpty());
    EXPECT_THAT(missing(sparse(), fp8_plan(seq, Framework::megatron_core)), IsEmpty());
  }
  EXPECT_THAT(missing(gpt(), fp8_plan(1024, Framework::megatron_core)), IsEmpty());
  EXPECT_THAT(missing(llama(), fp8_plan(512, Framework::megatron_core)), testing::Not(IsEmpty()));
}

TEST(Fp8Grid, TimesEachLayoutOfItsProductsAndThoseOfBf16) {
  std::set<std::string> names;
  for (const KernelJob& job : fp8_grid().kernels)
    if (job.key.table == SampleKey::Table::gemm) names.insert(job.key.name);
  EXPECT_THAT(
      names, testing::ElementsAre("bf16", "bf16/input_gradient", "bf16/weight_gradient", "fp8", "fp8/grouped",
                                  "fp8/grouped/input_gradient", "fp8/grouped/weight_gradient",
                                  "fp8/input_gradient", "fp8/weight_gradient"));
}

// Output layers and routers may have any width.
TEST(Fp8Grid, HoldsTheGridInBf16) {
  const Missing missing = missing_of(profile_of(fp8_grid()), grid_jobs(Precision::bf16, kWidest));
  EXPECT_THAT(missing.kernels, testing::IsEmpty());
}

// Shapes between those of the grid: more layers, another vocabulary, heads shared, more rows.
TEST(Fp8Grid, PricesAPlanBetweenItsShapesWithoutExtrapolation) {
  Model model = sparse();
  model.layers = 8;
  model.vocab = 12288;
  model.kv_heads = 4;
  model.ffn_hidden = 1536;
  model.experts->first_layer = 2;
  Plan plan = fp8_plan(2048, Framework::megatron_core);
  plan.micro_batch = 2;
  const Profile profile = profile_of(fp8_grid());
  const Prices prices = price(make_work(model, plan), plan, read_cluster("dgx-h100"), profile);
  EXPECT_GT(prices.priced_s, 0);
  EXPECT_EQ(prices.extrapolated_s, 0);
}

TEST(Grid, InBf16HoldsNothingOfFp8) {
  for (const KernelJob& job : grid_jobs(Precision::bf16, kWidest).kernels) {
    EXPECT_FALSE(job.key.name.starts_with("fp8")) << to_string(job.key);
    EXPECT_NE(job.key.name, "quantise");
  }
}

}  // namespace
}  // namespace rehearse
