// Which kernels make fp8 operands, how many bytes they move, and what travels between ranks.
#include <gtest/gtest.h>

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

// Bytes that quantising moves, for each token.
double quantised_bytes(const Block& block) {
  double bytes = 0;
  for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight})
    for (const Kernel& kernel : *kernels) {
      const auto* kind = std::get_if<Pointwise>(&kernel.what);
      if (kind != nullptr && *kind == Pointwise::quantise) bytes += block.bytes_moved(kernel);
    }
  return bytes / kSeq;
}

// Norms write fp8, whose transpose costs 2 bytes; the inputs of the other two layers and all four gradients
// are read in 2 bytes and written twice in 1.
TEST(Fp8, TransformerEngineFusesTheNormsAndWritesBothWays) {
  const Case c = fp8_case(Framework::megatron_core, 1);
  const Work work = make_work(c.model, c.plan);
  const double h = kHidden, q = kHidden + 2 * kKeys, f = kWidth;
  EXPECT_DOUBLE_EQ(quantised_bytes(block_called(work, "layer")),
                   2 * 2 * h + 4 * (h + f) + 4 * (q + h + 2 * f + h));
}

// The maximum comes first, 2 bytes; inputs are quantised by rows in the forward pass and by columns in the
// backward.
TEST(Fp8, DynamicScalingReadsTwiceAndQuantisesInputsInBothPasses) {
  const Case c = fp8_case(Framework::torchtitan, 1);
  const Work work = make_work(c.model, c.plan);
  const double inputs = 3 * kHidden + kWidth, gradients = (kHidden + 2 * kKeys) + 2 * kHidden + 2 * kWidth;
  const double scalars = (4 * 2 + 4) * 2 * 4.0 / kSeq;  // written and read
  EXPECT_NEAR(quantised_bytes(block_called(work, "layer")), 2 * 5 * inputs + 6 * gradients + scalars, 1e-9);
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

// Transformer Engine gathers inputs and gradients in fp8, torchtitan inputs only; sums travel in bf16.
TEST(Fp8, GathersOneByteAnElementAndScattersTwo) {
  const auto sizes = [](Framework framework, CollectiveOp op) {
    const Case c = fp8_case(framework, 2);
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
  EXPECT_EQ(sizes(Framework::torchtitan, CollectiveOp::all_gather), (Bytes{1, 1, 2, 2}));
  EXPECT_EQ(sizes(Framework::megatron_core, CollectiveOp::reduce_scatter), (Bytes{2, 2, 2, 2}));
}

}  // namespace
}  // namespace rehearse
