// Experts' GEMMs that activate and quantize too, as they were measured.
#include <gtest/gtest.h>

#include <string>

#include "base/json_reader.h"
#include "cost/pricing.h"
#include "model/read.h"

namespace rehearse {
namespace {

struct Times {
  double measured = 0, priced = 0;  // s
};

// Sums the kernels of `shape`, and compares each with its time.
Times of_all(const Json& shape, double rows, const Profile& profile, const Cluster& cluster) {
  Model model = read_model("qwen3-30b-a3b");
  Plan plan;
  model.hidden = shape["hidden"];
  model.experts->count = shape["experts"];
  model.experts->ffn_hidden = shape["ffn"];
  model.experts->per_token = 4;
  plan.seq = 4096;
  plan.micro_batch = static_cast<std::int64_t>(rows) / 4 / plan.seq;
  plan.global_batch = plan.micro_batch;
  plan.precision = Precision::fp8;
  plan.fp8_scaling = Fp8Scaling::mx;
  plan.fp8_either_layout = plan.fused_experts = true;
  plan.fused_accumulation = false;  // weight gradients in bf16
  const Work work = make_work(model, plan);
  KernelTimes times(profile, cluster.gpu, "fp8");
  Pricing pricing(plan, cluster, profile, times);
  Times all;
  for (const Block& block : work.blocks)
    for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight})
      for (const Kernel& kernel : *kernels) {
        const auto found = shape["ms"].find(kernel.name);
        if (found == shape["ms"].end()) continue;
        const double priced = pricing.time_of(block, kernel).seconds / pricing.on_slowest;
        EXPECT_NEAR(priced * 1e3 / found->get<double>(), 1, 0.22) << kernel.name;
        all.measured += found->get<double>() * 1e-3;
        all.priced += priced;
      }
  return all;
}

TEST(FusedProducts, TakeWithinATenthOfWhatWasMeasured) {
  const Json table = read_json_file(SOURCE_DIR "/calibrate/data/experts/fused_products.json");
  const Profile profile = read_profile("gb200");
  const Cluster cluster = read_cluster("gb200-nvl72");
  for (const Json& shape : table["shapes"]) {
    const Times all = of_all(shape, table["rows"], profile, cluster);
    EXPECT_GT(all.measured, 0);
    EXPECT_NEAR(all.priced / all.measured, 1, 0.1) << shape;
  }
}

}  // namespace
}  // namespace rehearse
