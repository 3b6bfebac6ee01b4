// Rows that go to each rank once: their number, and the kernels around their exchange.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>

#include "model/read.h"
#include "plan/work/shape.h"
#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Fanout, IsNeverMoreThanThePlacesNorThanTheChoices) {
  EXPECT_DOUBLE_EQ(copies({64, 8}, 1), 1);
  EXPECT_DOUBLE_EQ(copies({64, 1}, 8), 1);
  EXPECT_DOUBLE_EQ(copies({64, 64}, 8), 8);
  EXPECT_DOUBLE_EQ(copies({64, 8}, 64), 8) << "an expert a place: as many as are chosen";
  EXPECT_DOUBLE_EQ(copies({4, 2}, 2), 2 * (1 - 1.0 / 6)) << "one of the six pairs leaves a place out";
}

// Counted over all choices of k of E experts.
RC_GTEST_PROP(Fanout, IsTheAverageOverAllChoices, ()) {
  const int places = *rc::gen::inRange(1, 5), each = *rc::gen::inRange(1, 4), experts = places * each;
  const int chosen = *rc::gen::inRange(1, experts + 1);
  double visited = 0, all = 0;
  for (unsigned choice = 0; choice < 1U << experts; ++choice) {
    if (std::popcount(choice) != chosen) continue;
    ++all;
    for (int place = 0; place < places; ++place)
      visited += (choice >> (place * each) & ((1U << each) - 1)) != 0 ? 1 : 0;
  }
  RC_ASSERT(std::abs(copies({experts, chosen}, places) - visited / all) < 1e-12 * places);
}

Case qwen(Dispatcher dispatcher) {
  Case c{read_model("qwen3-30b-a3b"), {}};
  c.plan.seq = 4096;
  c.plan.ep = c.plan.dp = c.plan.global_batch = 8;
  c.plan.dispatcher = dispatcher;
  return c;
}

Block layer_of(const Case& c) {
  return block_called(make_work(c.model, c.plan), "sparse_layer");
}

// Exchanges among the experts' ranks, in order.
std::vector<std::string> exchanges(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels)
    if (const auto* collective = std::get_if<Collective>(&kernel.what);
        collective != nullptr && collective->group == CommGroup::expert)
      names.push_back(kernel.name);
  return names;
}

TEST(RowExchange, BringsEachRowToARankOnce) {
  const Block layer = layer_of(qwen(Dispatcher::deepep));
  const double visiting = std::ceil(4096 * copies({128, 8}, 8));
  const auto& there = std::get<Collective>(kernel_called(layer.forward, "dispatch").what);
  EXPECT_EQ(there.op, CollectiveOp::dispatch);
  EXPECT_EQ(there.bytes, visiting * 2048 * 2);
  EXPECT_EQ(there.weights, visiting * 8);
  EXPECT_LT(there.bytes, 0.7 * 4096 * 8 * 2048 * 2) << "NCCL's all-to-all takes a row for each choice";
  const auto& home = std::get<Collective>(kernel_called(layer.forward, "combine").what);
  EXPECT_EQ(home.op, CollectiveOp::combine);
  EXPECT_EQ(home.bytes, there.bytes);
  EXPECT_EQ(home.weights, 0) << "they were used up in the activation";
  // Backward each is the other one; the weights' gradients return with the rows'.
  const auto& undone = std::get<Collective>(kernel_called(layer.backward_input, "dispatch_backward").what);
  EXPECT_EQ(undone.op, CollectiveOp::combine);
  EXPECT_EQ(undone.weights, there.weights);
  EXPECT_EQ(std::get<Collective>(kernel_called(layer.backward_input, "combine_backward").what).op,
            CollectiveOp::dispatch);
}

TEST(RowExchange, OfHybridEpGathersAByteForEachRowAndExpertOnTheWayThereOnly) {
  const Block hybrid = layer_of(qwen(Dispatcher::hybridep)), deep = layer_of(qwen(Dispatcher::deepep));
  EXPECT_THAT(exchanges(hybrid.forward), ElementsAre("gather_routing_map", "dispatch", "combine"));
  EXPECT_THAT(exchanges(hybrid.backward_input), ElementsAre("combine_backward", "dispatch_backward"));
  EXPECT_THAT(exchanges(deep.forward), ElementsAre("dispatch", "combine"));
  EXPECT_EQ(std::get<Collective>(kernel_called(hybrid.forward, "gather_routing_map").what).bytes,
            8 * 4096.0 * 128);
}

TEST(RowExchange, MakesTheHostWaitOnceForWhatTheLibraryCounted) {
  const auto waits = [](Dispatcher dispatcher) {
    std::vector<std::string> names;
    for (const Kernel& kernel : layer_of(qwen(dispatcher)).forward)
      if (kernel.host_waits) names.push_back(kernel.name);
    return names;
  };
  EXPECT_THAT(waits(Dispatcher::all_to_all), ElementsAre("top_k"));
  EXPECT_THAT(waits(Dispatcher::deepep), ElementsAre("dispatch_layout"));
  EXPECT_THAT(waits(Dispatcher::hybridep), ElementsAre("scan_routing_map"));
}

// HybridEP's own kernels look through a map of rows and local experts; DeepEP leaves that to others.
TEST(RowExchange, OfHybridEpSpreadsAndCollectsRowsByAMap) {
  const Block hybrid = layer_of(qwen(Dispatcher::hybridep)), deep = layer_of(qwen(Dispatcher::deepep));
  const auto kind = [](const Block& block, bool back, const char* name) {
    return std::get<Pointwise>(kernel_called(back ? block.backward_input : block.forward, name).what);
  };
  EXPECT_EQ(kind(hybrid, false, "permute"), Pointwise::spread_rows);
  EXPECT_EQ(kind(hybrid, false, "unpermute"), Pointwise::collect_rows);
  EXPECT_EQ(kind(hybrid, true, "permute_backward"), Pointwise::collect_rows);
  EXPECT_EQ(kind(hybrid, true, "unpermute_backward"), Pointwise::spread_rows);
  EXPECT_EQ(kind(deep, false, "permute"), Pointwise::copy_visitors);
  const double looks = std::ceil(4096 * copies({128, 8}, 8)) * 16;
  for (const auto* kernels : {&hybrid.forward, &hybrid.backward_input})
    for (const Kernel& kernel : *kernels)
      if (kernel.name.find("permute") != std::string::npos) {
        EXPECT_EQ(hybrid.tensors[static_cast<std::size_t>(kernel.reads.in(Slot::map))].elements, looks)
            << kernel.name;
      }
}

// Rows that are sent come back with every dispatcher, and the experts compute the same.
RC_GTEST_PROP(RowExchange, LeavesTheExpertsTheSameWork, ()) {
  Case c = any_case();
  add_experts(c, true);
  c.plan.ep = c.plan.dp = 2 * c.plan.tp;
  c.plan.etp = 1;
  c.plan.global_batch = c.plan.micro_batch * c.plan.dp;
  c.model.experts->count = c.plan.ep * *rc::gen::inRange<std::int64_t>(1, 4);
  c.plan.moe_capacity = 0;
  const FlopCount before = count_flops(make_work(c.model, c.plan), c.plan);
  c.plan.dispatcher = *rc::gen::element(Dispatcher::deepep, Dispatcher::hybridep);
  RC_ASSERT(broken_rules(c.plan, c.model, c.plan.gpus()).empty());
  const Work work = make_work(c.model, c.plan);
  const FlopCount after = count_flops(work, c.plan);
  RC_ASSERT(after.forward == before.forward && after.backward == before.backward);
  for (const Block& block : work.blocks)
    RC_ASSERT(std::ranges::none_of(block.forward, [](const Kernel& kernel) {
      const auto* collective = std::get_if<Collective>(&kernel.what);
      return collective != nullptr && collective->op == CollectiveOp::all_to_all;
    }));
}

TEST(GroupedProducts, AreLaunchedOneByOneByTransformerEngine) {
  Case c = qwen(Dispatcher::all_to_all);
  EXPECT_EQ(kernel_called(layer_of(c).forward, "experts_up").launches, 16);
  c.plan.framework = Framework::torchtitan;
  EXPECT_EQ(kernel_called(layer_of(c).forward, "experts_up").launches, 1);
}

TEST(RowExchange, HasRulesOfItsOwn) {
  Case c = qwen(Dispatcher::deepep);
  EXPECT_EQ(broken(c), "");
  c.plan.dispatcher_sms = 21;
  EXPECT_EQ(broken(c),
            "moe_dispatcher_sms: DeepEP needs an even number of SMs; moe_dispatcher_sms = 20 or 22\n");
  c.plan.dispatcher = Dispatcher::hybridep;
  EXPECT_EQ(broken(c), "");
  c.plan.dispatcher = Dispatcher::all_to_all;
  EXPECT_THAT(broken(c), HasSubstr("moe_dispatcher_sms: NCCL's all-to-all"));
  c = qwen(Dispatcher::deepep);
  c.plan.moe_capacity = 1;
  EXPECT_THAT(broken(c), HasSubstr("moe_dispatcher: expert capacity is modelled only"));
  c = qwen(Dispatcher::deepep);
  c.plan.core_release = 12;
  EXPECT_THAT(broken(c), HasSubstr("core_release: DeepEP and HybridEP apply the router weights"));
  c = qwen(Dispatcher::deepep);
  c.plan.ep = 1;
  EXPECT_THAT(broken(c), HasSubstr("moe_dispatcher: token dispatch needs expert parallelism"));
  c = qwen(Dispatcher::deepep);
  c.plan.etp = 2;
  c.plan.ep = 4;
  EXPECT_THAT(broken(c), HasSubstr("moe_dispatcher: DeepEP and HybridEP are modelled only"));
  c.model = read_model("llama3-8b");
  c.plan.ep = c.plan.etp = 1;
  EXPECT_THAT(broken(c), HasSubstr("moe_dispatcher: the model has no experts; moe_dispatcher = alltoall"));
}

}  // namespace
}  // namespace rehearse
