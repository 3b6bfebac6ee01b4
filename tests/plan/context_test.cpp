#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "work_case.h"

namespace rehearse {
namespace {

constexpr double kSeq = 8192, kHidden = 1024, kKeys = 512;  // 16 heads of 64, 8 of them with keys

Case context_case(int cp, ContextExchange exchange) {
  Case c{llama(4, 1024, 16, 8, 4096, 32000), {}};
  c.plan.cp = cp;
  c.plan.cp_exchange = exchange;
  c.plan.seq = 8192;
  return c;
}

// Bytes of the op over the context-parallel group.
double moved(const std::vector<Kernel>& kernels, CollectiveOp op) {
  double bytes = 0;
  for (const Kernel& kernel : kernels) {
    const auto* c = std::get_if<Collective>(&kernel.what);
    if (c != nullptr && c->group == CommGroup::context && c->op == op) bytes += c->bytes * double(c->calls);
  }
  return bytes;
}

Block layer_of(const Case& c) {
  return block_called(make_work(c.model, c.plan), "layer");
}

class Ring : public testing::TestWithParam<int> {};

TEST_P(Ring, PassesKeysAndValuesToAllOthersAndTheirGradientsBack) {
  const double cp = GetParam();
  const Block layer = layer_of(context_case(GetParam(), ContextExchange::ring));
  const double chunk = 2 * 2 * kKeys * kSeq / cp;
  EXPECT_EQ(moved(layer.forward, CollectiveOp::send_receive), (cp - 1) * chunk);
  EXPECT_EQ(moved(layer.backward_input, CollectiveOp::send_receive), 2 * (cp - 1) * chunk);
}

double moved(const Block& block, const std::vector<Kernel>& kernels, const std::string& start) {
  double bytes = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.name.starts_with(start)) bytes += block.bytes_moved(kernel);
  return bytes;
}

TEST_P(Ring, ReadsAndWritesEverySumAgainAtEachStepAfterTheFirst) {
  const double cp = GetParam(), rows = kSeq / cp, passes = 2 + 3 * (cp - 1);
  const Block layer = layer_of(context_case(GetParam(), ContextExchange::ring));
  const double queries = 2 * kHidden * rows, others = 2 * 2 * kKeys * rows, log_sum_exp = 4 * 16 * rows;
  EXPECT_EQ(moved(layer, layer.forward, "ring_pack"), 2 * others);
  EXPECT_EQ(moved(layer, layer.forward, "ring_merge"), passes * (queries + log_sum_exp));
  EXPECT_EQ(moved(layer, layer.backward_input, "ring_pack"), 2 * others);
  EXPECT_EQ(moved(layer, layer.backward_input, "ring_join"), cp * 2 * others);
  EXPECT_EQ(moved(layer, layer.backward_input, "ring_gradient_sum"), passes * (queries + others));
}

INSTANTIATE_TEST_SUITE_P(Context, Ring, testing::Values(2, 4, 8));

TEST(Context, GatherBringsAllKeysAndValuesTwiceAndScattersTheirGradients) {
  const Block layer = layer_of(context_case(4, ContextExchange::gather));
  const double whole = 2 * 2 * kKeys * kSeq;
  EXPECT_EQ(moved(layer.forward, CollectiveOp::all_gather), whole);
  EXPECT_EQ(moved(layer.backward_input, CollectiveOp::all_gather), whole);
  EXPECT_EQ(moved(layer.backward_input, CollectiveOp::reduce_scatter), whole);
}

TEST(Context, AllToAllMovesAllOperandsAndTheOutput) {
  const Block layer = layer_of(context_case(4, ContextExchange::all_to_all));
  const double own = 2 * (2 * kHidden + 2 * kKeys) * kSeq / 4;
  EXPECT_EQ(moved(layer.forward, CollectiveOp::all_to_all), own);
  EXPECT_EQ(moved(layer.backward_input, CollectiveOp::all_to_all), own);
}

RC_GTEST_PROP(Context, SavesOneShareOfTheLayer, ()) {
  const ContextExchange exchange =
      *rc::gen::element(ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all);
  const double cp = *rc::gen::element(2, 4, 8);
  const double alone = saved_bytes(layer_of(context_case(1, exchange)));
  // Two copies of the output stay: the attention's, and for the projection the one after the all-to-all.
  const double twice = exchange == ContextExchange::all_to_all ? 2 * kHidden * kSeq : 0;
  RC_ASSERT(saved_bytes(layer_of(context_case(int(cp), exchange))) == (alone + twice) / cp);
}

RC_GTEST_PROP(Context, DividesTheAttentionEvenly, ()) {
  Case c = any_case();
  add_context(c);
  const double split = count_flops(make_work(c.model, c.plan), c.plan).hardware();
  c.plan.cp = 1;
  RC_ASSERT(split == count_flops(make_work(c.model, c.plan), c.plan).hardware());
}

RC_GTEST_PROP(Windows, CountTheKeysThatAQuerySees, ()) {
  const std::int64_t seq = *rc::gen::inRange(1, 300), window = *rc::gen::inRange(1, 400);
  double area = 0;  // area under the causal line; full squares are halved
  for (std::int64_t i = 0; i < seq; ++i) {
    const double top = double(i + 1), bottom = double(i), w = double(window);
    area += top <= w ? (top + bottom) / 2 : w;
  }
  Attention attention{1, 1, 1, 1, seq, seq};
  attention.window = window;
  RC_ASSERT(std::abs(flops(attention) - 4 * 2 * area) < 1e-6 * flops(attention));
}

TEST(Windows, ReachTheKernelsOfTheModel) {
  Model model = llama(2, 64, 8, 8, 128, 256);
  const double full = count_flops(make_work(model, {}), {}).forward;
  model.window = 512;
  const double squares = 2048.0 * 2048 - (2048.0 * 2048 - 1536.0 * 1536);
  EXPECT_EQ(full - count_flops(make_work(model, {}), {}).forward, 2 * 4 * 64 * squares);
}

}  // namespace
}  // namespace rehearse
