// Kernels, bytes moved and saved activations of eager PyTorch, where operations between the GEMMs are not
// fused.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/frameworks/traits.h"
#include "work_case.h"

namespace rehearse {
namespace {

constexpr double kTokens = 32;

Case llama_case() {
  Case c{llama(2, 64, 4, 2, 160, 320), {}};
  c.plan.seq = static_cast<std::int64_t>(kTokens);
  return c;
}

Block eager_layer_of(const Case& c) {
  return block_called(make_work(c.model, c.plan), "layer");
}

struct Moved {
  int kernels = 0;
  double bytes = 0;
};

// Over all passes, of kernels whose names begin alike.
Moved moved(const Block& block, const std::string& prefix) {
  Moved sum;
  for (const auto* list : {&block.forward, &block.backward_input, &block.backward_weight}) {
    for (const Kernel& kernel : *list) {
      if (!kernel.name.starts_with(prefix)) continue;
      sum.kernels += 1;
      sum.bytes += block.bytes_moved(kernel);
    }
  }
  return sum;
}

TEST(Eager, RmsNormMoves128BytesAnElement) {
  Case c = llama_case();
  c.plan.fused_norm = false;
  const Moved norm = moved(eager_layer_of(c), "attention_norm");
  EXPECT_EQ(norm.kernels, 7 + 11 + 2);
  // Beside that: the weight, twice, and its gradient; the mean and the scale of each row and their gradients.
  const double elements = kTokens * 64, weights = 2 + 2 + 4, rows = 4 * (1 + 2 + 1 + 1 + 2);
  EXPECT_EQ(norm.bytes, 128 * elements + weights * 64 + rows * kTokens);
}

TEST(Eager, LayerNormStaysOneKernel) {
  Case c{gpt(2, 64, 4, 320, 32), {}};
  c.plan.seq = 32;
  const Moved fused = moved(eager_layer_of(c), "attention_norm");
  c.plan.fused_norm = false;
  EXPECT_EQ(moved(eager_layer_of(c), "attention_norm").bytes, fused.bytes);
}

TEST(Eager, RotationGoesThroughFp32AndKeepsNothing) {
  Case c = llama_case();
  c.plan.framework = Framework::fsdp;
  const double kept = saved_bytes(eager_layer_of(c));
  c.plan.fused_rotary = false;
  const Block layer = eager_layer_of(c);
  const double elements = kTokens * (64 + 32);
  EXPECT_EQ(moved(layer, "query_").bytes + moved(layer, "key_").bytes, 2 * (6 + 8 + 6) * elements);
  EXPECT_EQ(saved_bytes(layer), kept);
}

// Fused it reads half of the scores and of their gradients: those that the mask leaves.
TEST(Eager, SoftmaxOfMegatron2021TakesShortMatricesOf16BitScoresInFours) {
  Case c{gpt(2, 64, 2, 320, 32), {}};
  c.plan.seq = 32;
  c.plan.fused_attention = false;
  c.plan.framework = Framework::megatron_2021;
  const double scores = 2 * kTokens * kTokens;
  EXPECT_EQ(moved(eager_layer_of(c), "softmax").bytes, 76 * scores);
  c.plan.micro_batch = c.plan.global_batch = 2;
  EXPECT_EQ(moved(eager_layer_of(c), "softmax").bytes, 7 * 2 * scores);
  c.plan.precision = Precision::fp32;
  EXPECT_GT(moved(eager_layer_of(c), "softmax").bytes, 7 * 2 * 2 * scores);
  c.plan.precision = Precision::bf16;
  c.plan.seq = 4096;
  EXPECT_EQ(moved(eager_layer_of(c), "softmax").bytes, 76 * scores * 128 * 128 * 2);
  c.plan.seq = 32;
  c.plan.micro_batch = c.plan.global_batch = 1;
  c.plan.framework = Framework::megatron_core;
  EXPECT_EQ(moved(eager_layer_of(c), "softmax").bytes, 7 * scores);
}

TEST(Eager, SoftmaxThatIsNotFusedTakesAKernelAnOperation) {
  Case c{gpt(2, 64, 4, 320, 32), {}};
  c.plan.seq = 32;
  c.plan.fused_attention = false;
  EXPECT_EQ(moved(eager_layer_of(c), "softmax").kernels, 2);
  c.plan.fused_softmax = false;
  EXPECT_EQ(moved(eager_layer_of(c), "softmax").kernels, 5 + 5);
}

// Forward: 2 bytes an element are written and read again. Backward: 2 are read, 4 written and read back,
// except the 2 that the bias's gradient reads anyway. Gradients of the biases have 16 bits, not 32.
TEST(Eager, AutocastAroundMegatron2021WritesExpandedBiasesOut) {
  Case c{gpt(2, 64, 4, 320, 32), {}};
  c.plan.seq = 32;
  c.plan.framework = Framework::megatron_2021;
  const auto bytes = [&c] {
    const Block layer = eager_layer_of(c);
    return moved(layer, "attention_residual").bytes + moved(layer, "mlp_residual").bytes;
  };
  const double without = bytes();
  c.plan.recipe = Recipe::autocast;
  EXPECT_EQ(bytes() - without, 2 * (2 + 2 + 2 + 4 + 4 - 2) * kTokens * 64 - 2 * (4 - 2) * 64);
}

// Read and written in 16 bits: queries, keys and values in both passes, attention's output in the forward
// pass.
TEST(Eager, Megatron2021RearrangesHeads) {
  Case c{gpt(2, 64, 2, 320, 32), {}};
  c.plan.seq = 32;
  c.plan.fused_attention = false;
  const auto bytes = [&c](const char* name) { return moved(eager_layer_of(c), name).bytes; };
  EXPECT_EQ(bytes("qkv_gradient") + bytes("attended_in_rows"), 0);
  const double without = bytes("qkv_bias");
  c.plan.framework = Framework::megatron_2021;
  EXPECT_EQ(bytes("qkv_gradient"), 4 * 3 * kTokens * 64);
  EXPECT_EQ(bytes("attended_in_rows"), 4 * kTokens * 64);
  EXPECT_EQ(bytes("qkv_bias") - without, 4 * 3 * kTokens * 64);
}

// 64 wide queries of 4 heads, 32 wide keys and values of 2: where rotation leaves them apart.
TEST(Eager, TransformerEngineCopiesQueriesOfGroupsAndValuesAndJoinsGradients) {
  Case c = llama_case();
  c.plan.framework = Framework::megatron_core;
  const auto bytes = [&c](const char* name) { return moved(eager_layer_of(c), name).bytes; };
  EXPECT_EQ(bytes("query_copy"), 4 * kTokens * 64);
  EXPECT_EQ(bytes("value_copy"), 4 * kTokens * 32);
  EXPECT_EQ(bytes("qkv_gradient"), 4 * kTokens * (64 + 32 + 32));
  c.model.kv_heads = c.model.heads;
  EXPECT_EQ(bytes("query_copy"), 0);
  EXPECT_EQ(bytes("value_copy"), 4 * kTokens * 64);
  c.model.positions = Positions::learned;
  EXPECT_EQ(bytes("value_copy") + bytes("qkv_gradient"), 0);
}

// Both passes gather and scatter twice a layer, 2 bytes an element read and written each time. A scatter of
// the sum of several GEMMs is not cut into chunks: it is their input's gradient.
TEST(Eager, DTensorMovesPartsOfSequencesUnlessAProductIsCutIntoChunks) {
  Case c = llama_case();
  c.plan.tp = 2;
  c.plan.sequence_parallel = true;
  const auto bytes = [&c] {
    const Block layer = eager_layer_of(c);
    double sum = 0;
    for (const auto* list : {&layer.forward, &layer.backward_input})
      for (const Kernel& kernel : *list)
        if (kernel.name.ends_with("_moved")) sum += layer.bytes_moved(kernel);
    return sum;
  };
  EXPECT_EQ(bytes(), 0);
  c.plan.framework = Framework::torchtitan;
  EXPECT_EQ(bytes(), (4 + 4) * 4 * kTokens * 64);
  c.plan.tp_comm_overlap = true;
  EXPECT_EQ(bytes(), 2 * 4 * kTokens * 64);
}

TEST(Eager, TorchtitanRepeatsKeysAndValuesForEachHeadOfQueries) {
  Case c = llama_case();
  c.plan.framework = Framework::torchtitan;
  c.plan.cp = 2;
  const Block layer = eager_layer_of(c);
  for (const char* name : {"key_repeat", "value_repeat"})
    EXPECT_EQ(moved(layer, name).bytes, 2 * 2 * (64 + 32) * kTokens / 2);
  for (const Kernel& kernel : layer.forward) {
    if (const auto* attention = std::get_if<Attention>(&kernel.what)) {
      EXPECT_EQ(attention->kv_heads, 4);
    }
    if (const auto* sent = std::get_if<Collective>(&kernel.what)) {
      EXPECT_EQ(sent->bytes, 2 * (64 + 64) * kTokens / 2) << kernel.name;
    }
  }
}

TEST(Eager, AGateKeepsItsSiluForTheProduct) {
  Case c = llama_case();
  const Block fused = eager_layer_of(c);
  c.plan.fused_activation = false;
  const Block eager = eager_layer_of(c);
  const double elements = kTokens * 160;
  EXPECT_EQ(moved(fused, "activation").bytes, (6 + 10) * elements);
  EXPECT_EQ(moved(eager, "activation").bytes, (4 + 6 + 6 + 6 + 6) * elements);
  EXPECT_EQ(saved_bytes(eager) - saved_bytes(fused), 2 * elements);
}

TEST(Eager, ASquaredReluMoves28BytesAnElementWhereFusedOnesMove10) {
  Case c = llama_case();
  c.model.gated_mlp = false;
  c.model.squared_relu = true;
  const double elements = kTokens * 160;
  EXPECT_EQ(moved(eager_layer_of(c), "activation").bytes, 10 * elements);
  c.plan.fused_activation = false;
  EXPECT_EQ(moved(eager_layer_of(c), "activation").bytes, 28 * elements);
  c.model.squared_relu = false;  // GELU is one kernel of PyTorch's
  EXPECT_EQ(moved(eager_layer_of(c), "activation").bytes, 10 * elements);
}

double loss_bytes(const Case& c) {
  const Block head = block_called(make_work(c.model, c.plan), "head");
  double sum = 0;
  for (const auto* list : {&head.forward, &head.backward_input})
    for (const Kernel& kernel : *list) {
      const auto* kind = std::get_if<Pointwise>(&kernel.what);
      if (kind != nullptr && (stream_of(*kind) == Pointwise::cross_entropy ||
                              stream_of(*kind) == Pointwise::cross_entropy_backward))
        sum += head.bytes_moved(kernel);
    }
  return sum;
}

// The cast 6, log_softmax 16, the likelihood's gradient 4, that of log_softmax 20, of the cast 6.
TEST(Eager, LossOfWholeRowsMoves52BytesALogitAndAFusedOneEight) {
  Case c = llama_case();
  c.plan.framework = Framework::torchtitan;
  const double logits = kTokens * 320, of_tokens = kTokens * (8 + 8 + 4 * 3);
  EXPECT_EQ(loss_bytes(c), 8 * logits + of_tokens);
  c.plan.fused_cross_entropy = false;
  EXPECT_EQ(loss_bytes(c), 52 * logits + kTokens * (8 + 8 + 4));
}

// Not counting values of one number a token.
TEST(MegatronLoss, Moves40BytesALogitFused52NotAnd28WhereLogitsAreWide) {
  Case c = llama_case();
  const auto bytes_a_logit = [&c] { return std::floor(loss_bytes(c) / (kTokens * 320)); };
  EXPECT_EQ(bytes_a_logit(), 40);
  c.plan.fused_cross_entropy = false;
  EXPECT_EQ(bytes_a_logit(), 52);
  c.plan.fused_cross_entropy = true;
  c.plan.precision = Precision::fp32;
  EXPECT_EQ(bytes_a_logit(), 28);
}

// Read 2, read 2 and made in fp32 4, multiplied 8, cast 6.
TEST(TransformerEngineLoss, Moves22BytesALogitAndSavesFour) {
  Case c = llama_case();
  c.plan.loss_fusion = LossFusion::te;
  const double logits = kTokens * 320;
  EXPECT_EQ(std::floor(loss_bytes(c) / logits), 22);
  EXPECT_EQ(std::floor(saved_bytes(block_called(make_work(c.model, c.plan), "head")) / logits), 4);
  c.plan.tp = 2;
  EXPECT_EQ(std::floor(loss_bytes(c) / (kTokens * 160)), 22);
}

// Read 2, read and made in their place 4, multiplied 4.
TEST(TransformerEngineLoss, MovedTenBytesALogitWhileItTookTheirPlace) {
  Case c = llama_case();
  c.plan.loss_fusion = LossFusion::te_in_place;
  EXPECT_EQ(std::floor(loss_bytes(c) / (kTokens * 320)), 10);
  const Block head = block_called(make_work(c.model, c.plan), "head");
  for (const Tensor& tensor : head.tensors)
    EXPECT_TRUE(tensor.elements != kTokens * 320 || tensor.name == "logits") << tensor.name;
}

// The cast 6, log_softmax 32; the gradients of the target 4, of the exponentials 8, their sum 12, scaled 8,
// cast 6.
TEST(Eager, LossParallelOfPyTorchMoves76BytesALogit) {
  Case c = llama_case();
  c.plan.framework = Framework::torchtitan;
  c.plan.fused_cross_entropy = false;
  c.plan.tp = 2;
  c.plan.sequence_parallel = true;
  EXPECT_EQ(std::floor(loss_bytes(c) / (kTokens * 160)), 76);
}

TEST(Eager, MultipliesNoMoreAndHoldsNoMoreParameters) {
  Case c = llama_case();
  const Work fused = make_work(c.model, c.plan);
  c.plan.fused_norm = c.plan.fused_rotary = c.plan.fused_activation = false;
  const Work eager = make_work(c.model, c.plan);
  EXPECT_EQ(eager.parameters(0), fused.parameters(0));
  EXPECT_EQ(count_flops(eager, c.plan).model(), count_flops(fused, c.plan).model());
}

TEST(Eager, AdamMoves80BytesAnElement) {
  Plan plan;
  plan.recipe = Recipe::fsdp;
  const auto bytes = [&plan] {
    Block scratch;
    double sum = 0;
    for (const Kernel& kernel : optimizer_kernels(1000, plan, scratch)) sum += scratch.bytes_moved(kernel);
    return sum / 1000;
  };
  EXPECT_EQ(bytes(), 4 * 4 + 3 * 4);
  plan.fused_adam = false;
  EXPECT_EQ(bytes(), 80);
  plan.recipe = Recipe::megatron;  // a copy in 16 bits of the weight
  EXPECT_EQ(bytes(), 80 + 6);
}

// For an fp16 element: 6 bytes to copy the gradient, 8 to unscale it, 4 for the norm, 8 to clip, 28 in Adam,
// 6 to copy the weight. In bf16 nothing is unscaled, and fp32 gradients need no copy.
TEST(Eager, MegatronsOptimizerMoves60BytesAnElement) {
  Plan plan;
  plan.framework = Framework::megatron_2021;
  plan.precision = Precision::fp16;
  apply_framework(plan);
  plan.clip_grad = 1;
  constexpr double kElements = 1e6, kScalars = 3 * 4;  // squares and the scale, beside them
  const auto bytes = [&plan] {
    Block scratch;
    double sum = 0;
    for (const Kernel& kernel : optimizer_kernels(kElements, plan, scratch))
      if (!std::holds_alternative<Collective>(kernel.what)) sum += scratch.bytes_moved(kernel);
    return sum / kElements;
  };
  EXPECT_NEAR(bytes(), 6 + 8 + 4 + 8 + 28 + 6, kScalars / kElements * 2);
  plan.precision = Precision::bf16;
  plan.recipe = Recipe::megatron;
  EXPECT_NEAR(bytes(), 4 + 8 + 28 + 6, kScalars / kElements * 2);
  plan.fused_step = true;
  EXPECT_NEAR(bytes(), 4 + 30, kScalars / kElements * 2);
}

TEST(EarlyStop, SkipsTheDownProjectionAndTheResidualSum) {
  Case c = llama_case();
  c.plan.recompute = Recompute::full;
  const Block whole = eager_layer_of(c);
  c.plan.recompute_early_stop = true;
  const Block stopped = eager_layer_of(c);
  ASSERT_EQ(whole.recompute.size(), whole.forward.size());
  ASSERT_FALSE(stopped.recompute.empty());
  EXPECT_EQ(stopped.recompute.back().name, "activation");
  for (std::size_t i = 0; i < stopped.recompute.size(); ++i)
    EXPECT_EQ(stopped.recompute[i].name, whole.forward[i].name);
  EXPECT_EQ(saved_bytes(stopped), saved_bytes(whole));
}

TEST(EarlyStop, RunsGroupsOfLayersToTheirEnd) {
  Case c = llama_case();
  c.plan.recompute = Recompute::full;
  c.plan.recompute_layers = 2;
  c.plan.recompute_early_stop = true;
  const Block layer = eager_layer_of(c);
  EXPECT_EQ(layer.recompute.size(), layer.forward.size());
}

Case nanotron_case(std::int64_t kv_heads) {
  Case c = llama_case();
  c.model = llama(2, 64, 4, kv_heads, 160, 320);
  c.plan.framework = Framework::nanotron;
  return c;
}

double saved_beyond_megatron(const Case& nanotron) {
  Case other = nanotron;
  other.plan.framework = Framework::megatron_core;
  const auto saved = [](const Case& c) {
    const Block block = eager_layer_of(c);
    return block.bytes(block.saved);
  };
  return saved(nanotron) - saved(other);
}

// With as many keys as queries, they are copied as one tensor, and attention's queries keep all of it.
TEST(Eager, NanotronKeepsKeysAndValuesTwiceWhereTheyAreAsManyAsQueries) {
  EXPECT_EQ(saved_beyond_megatron(nanotron_case(4)), 2 * (kTokens * 64) * 2);
  EXPECT_EQ(saved_beyond_megatron(nanotron_case(2)), 0);
}

TEST(Eager, NanotronCopiesHeadsThreeTimesForwardAndBackward) {
  const double row = kTokens * 64 * 2;
  const auto copies = [](const Block& block) {
    Moved sum = moved(block, "heads_");
    const Moved joined = moved(block, "keys_and_values_");
    return Moved{sum.kernels + joined.kernels, sum.bytes + joined.bytes};
  };
  const Moved many = copies(eager_layer_of(nanotron_case(4)));
  EXPECT_EQ(many.kernels, 3 + 3);
  EXPECT_EQ(many.bytes, (2 * 3 + 2 * 2 + 2 * 2 + 2 * 2 + 2 * 3 + 2 * 3) * row);
  const Moved few = copies(eager_layer_of(nanotron_case(2)));  // keys and values are half as wide
  EXPECT_EQ(few.kernels, 3 + 2);
  EXPECT_EQ(few.bytes, (2 * 2 + 2 * 1 + 2 * 1 + 2 * 1 + 2 * 2) * row);
}

}  // namespace
}  // namespace rehearse
