// Which kernels write fp8 operands, how many bytes do they move, and which tensors do ranks exchange?
#include <gtest/gtest.h>

#include "plan/fp8.h"
#include "work_case.h"

namespace rehearse {
namespace {

constexpr std::int64_t kSeq = 32, kHidden = 64, kKeys = 16, kWidth = 160;

Case fp8_case(Framework framework, int tp) {
  Case c{llama(2, kHidden, 8, 2, kWidth, 512), {}};
  c.plan.seq = kSeq;
  c.plan.tp = tp;
  c.plan.sequence_parallel = tp > 1;
  c.plan.precision = Precision::fp8;
  c.plan.framework = framework;
  return c;
}

// Bytes that quantizing moves, for each token.
double quantized_bytes(const Block& block) {
  double bytes = 0;
  for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight})
    for (const Kernel& kernel : *kernels) {
      const auto* kind = std::get_if<Pointwise>(&kernel.what);
      if (kind != nullptr && stream_of(*kind) == Pointwise::quantize) bytes += block.bytes_moved(kernel);
    }
  return bytes / kSeq;
}

// Norms write fp8, whose transpose costs 2 bytes. The inputs of the other two layers and all four gradients
// are read in 2 bytes and written twice in 1.
TEST(Fp8, TransformerEngineFusesTheNormsAndWritesBothWays) {
  const Case c = fp8_case(Framework::megatron_core, 1);
  const Work work = make_work(c.model, c.plan);
  const double h = kHidden, q = kHidden + 2 * kKeys, f = kWidth;
  EXPECT_DOUBLE_EQ(quantized_bytes(block_called(work, "layer")),
                   2 * 2 * h + 4 * (h + f) + 4 * (q + h + 2 * f + h));
}

// The maximum comes first, 2 bytes. By tensor, the fp8 input is transposed in the backward pass. By row,
// inputs are quantized by rows in the forward pass and by columns in the backward pass; gradients are
// quantized twice there. Four inputs have seven GEMMs.
TEST(Fp8, DynamicScalingReadsTwice) {
  Case c = fp8_case(Framework::torchtitan, 1);
  const double inputs = 3 * kHidden + kWidth, gradients = (kHidden + 2 * kKeys) + 2 * kHidden + 2 * kWidth;
  const double maximum = 2 * 4.0;  // written and read
  EXPECT_NEAR(quantized_bytes(block_called(make_work(c.model, c.plan), "layer")),
              (5 + 2) * inputs + 6 * gradients + (4 + 7) * maximum / kSeq, 1e-9);
  c.plan.fp8_scaling = Fp8Scaling::row;
  EXPECT_NEAR(quantized_bytes(block_called(make_work(c.model, c.plan), "layer")),
              (5 + 5) * inputs + (5 + 5) * gradients + 2 * (4 + 7) * maximum, 1e-9);
}

// Scaled by tensor the layers' inputs stay in a byte an element, by row in two.
TEST(Fp8, DynamicScalingKeepsInputsInFp8WhereTheirScaleServesBothProducts) {
  Case c = fp8_case(Framework::torchtitan, 1);
  const double by_tensor = saved_bytes(block_called(make_work(c.model, c.plan), "layer"));
  c.plan.fp8_scaling = Fp8Scaling::row;
  EXPECT_GT(saved_bytes(block_called(make_work(c.model, c.plan), "layer")), by_tensor);
}

// torchtitan's policy keeps the maximum.
TEST(Fp8, RecomputeByOpTakesNoMaximumOfATensorAgain) {
  Case c = fp8_case(Framework::torchtitan, 1);
  c.plan.recompute = Recompute::op;
  const auto maxima = [&c] {
    std::size_t found = 0;
    const Work work = make_work(c.model, c.plan);
    for (const Kernel& kernel : block_called(work, "layer").recompute)
      found += kernel.name.ends_with("_maximum");
    return found;
  };
  EXPECT_EQ(maxima(), 0U);
  c.plan.fp8_scaling = Fp8Scaling::row;
  EXPECT_GT(maxima(), 0U);
}

double total(const std::vector<double>& bytes) {
  double sum = 0;
  for (const double each : bytes) sum += each;
  return sum;
}

TEST(Fp8, WeightsAreCastForEachMicrobatchByTorchaoAndOnceAStepByMegatron) {
  Plan plan = fp8_case(Framework::torchtitan, 1).plan;
  plan.global_batch = 4;
  EXPECT_EQ(total(weight_casts(plan).forward), 2 + 3);
  EXPECT_EQ(total(weight_casts(plan).again), 2 + 3);
  EXPECT_EQ(total(weight_casts(plan).backward), 3);
  plan.recompute = Recompute::op;
  EXPECT_EQ(total(weight_casts(plan).again), 3);
  plan.fp8_scaling = Fp8Scaling::row;
  EXPECT_EQ(total(weight_casts(plan).backward), 2 + 3);
  plan.fp8_scaling = Fp8Scaling::tensor_gathered;
  EXPECT_EQ(total(weight_casts(plan).forward), 0);
  EXPECT_EQ(total(weight_casts(plan).backward), 2);
  plan = fp8_case(Framework::megatron_core, 1).plan;
  plan.global_batch = 4;
  EXPECT_EQ(total(weight_casts(plan).forward), 4 / 4.0);
  EXPECT_TRUE(weight_casts(plan).again.empty());
  EXPECT_TRUE(weight_casts(plan).backward.empty());
  plan.recipe = Recipe::fp8_weights;
  EXPECT_EQ(total(weight_casts(plan).forward), 2 / 4.0);
  plan.fp8_weight_copies = 1;
  EXPECT_TRUE(weight_casts(plan).forward.empty());
  plan = fp8_case(Framework::fsdp, 1).plan;
  plan.global_batch = 4;
  EXPECT_EQ(total(weight_casts(plan).forward), 4);
  plan.precision = Precision::bf16;
  EXPECT_TRUE(weight_casts(plan).forward.empty());
}

TEST(Fp8, CastsTheWeightsOfItsProductsAlone) {
  const Case c = fp8_case(Framework::torchtitan, 1);
  const Work work = make_work(c.model, c.plan);
  const double weights = kHidden * (2.0 * kHidden + 2 * kKeys + 3 * kWidth);
  const Block& layer = block_called(work, "layer");
  EXPECT_EQ(cast_elements(layer, layer.forward, Precision::fp8), weights);
  EXPECT_EQ(cast_elements(layer, layer.backward_input, Precision::fp8), weights);
  EXPECT_EQ(cast_elements(layer, layer.backward_weight, Precision::fp8), 0);
  const Block& head = block_called(work, "head");
  EXPECT_EQ(cast_elements(head, head.forward, Precision::fp8), 0);
}

TEST(Fp8, ProductsReadOneByteAnElement) {
  for (const Framework framework : {Framework::megatron_core, Framework::torchtitan}) {
    const Case c = fp8_case(framework, 2);
    const Work work = make_work(c.model, c.plan);
    const Block& layer = block_called(work, "layer");
    for (const auto* kernels : {&layer.forward, &layer.backward_input, &layer.backward_weight})
      for (const Kernel& kernel : *kernels) {
        if (!std::holds_alternative<Gemm>(kernel.what)) continue;
        for (const TensorId id : kernel.reads) {
          const Tensor& tensor = layer.tensors[static_cast<std::size_t>(id)];
          if (tensor.role == TensorRole::parameter) continue;
          EXPECT_EQ(tensor.element_bytes, 1) << kernel.name << tensor.name;
        }
      }
  }
}

// Transformer Engine and torchtitan gather inputs and gradients in fp8, those scaled by row in bf16; sums
// travel in bf16.
TEST(Fp8, GathersOneByteAnElementAndScattersTwo) {
  const auto sizes = [](Framework framework, CollectiveOp op, Fp8Scaling scaling = Fp8Scaling::tensor) {
    Case c = fp8_case(framework, 2);
    c.plan.fp8_scaling = scaling;
    const Work work = make_work(c.model, c.plan);
    const Block& layer = block_called(work, "layer");
    std::vector<double> bytes;
    for (const auto* kernels : {&layer.forward, &layer.backward_input, &layer.backward_weight})
      for (const Kernel& kernel : *kernels) {
        const auto* collective = std::get_if<Collective>(&kernel.what);
        if (collective != nullptr && collective->op == op)
          bytes.push_back(collective->bytes / (kSeq * kHidden));
      }
    return bytes;
  };
  using Bytes = std::vector<double>;
  EXPECT_EQ(sizes(Framework::megatron_core, CollectiveOp::all_gather), (Bytes{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(sizes(Framework::torchtitan, CollectiveOp::all_gather), (Bytes{1, 1, 1, 1}));
  EXPECT_EQ(sizes(Framework::torchtitan, CollectiveOp::all_gather, Fp8Scaling::row), (Bytes{2, 2, 2, 2}));
  EXPECT_EQ(sizes(Framework::megatron_core, CollectiveOp::reduce_scatter), (Bytes{2, 2, 2, 2}));
}

}  // namespace
}  // namespace rehearse
