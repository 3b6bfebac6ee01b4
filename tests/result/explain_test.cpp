// Each topic prints this plan's numbers, and they are those of the report.
#include "result/explain/explain.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/quantity.h"
#include "cases.h"
#include "draw/memory.h"
#include "result/memory_table.h"

namespace rehearse {
namespace {

using namespace test;
using ::testing::HasSubstr;
using ::testing::Not;

Case interleaved_case() {
  Plan plan = small_plan(4, 2, 8, 2);
  plan.tp = 2;
  return make_case(plan, Durations{});
}

std::string text_of(const Case& made, const std::string& topic) {
  return explain(topic, {made.report, made.work, made.schedule});
}

TEST(Explain, EveryTopicNamesItsSource) {
  const Case made = interleaved_case();
  EXPECT_EQ(topics().size(), 11u);
  for (const Topic& topic : topics())
    EXPECT_THAT(text_of(made, topic.name), HasSubstr("Source:")) << topic.name;
}

TEST(Explain, AnUnknownTopicIsRefusedWithTheNearest) {
  const Case made = interleaved_case();
  try {
    text_of(made, "buble");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.violations().front().nearest, "bubble");
  }
}

TEST(Explain, BubbleIsItsClosedFormAndTheReports) {
  const Case made = interleaved_case();
  const std::string text = text_of(made, "bubble");
  EXPECT_THAT(text, HasSubstr("(p-1)/m = 3/8 = 0.3750"));
  EXPECT_THAT(text, HasSubstr("(p-1)/(v m) = 0.1875"));
  EXPECT_THAT(text, HasSubstr("(8/2 - 1)/8 = 0.3750"));
  EXPECT_THAT(text, HasSubstr(fmt::format("mean {:.2f} %", 100 * made.report.bubble_mean)));
}

TEST(Explain, MessagesTensorAndBatchAreTheirClosedForms) {
  const Case made = interleaved_case();
  EXPECT_THAT(text_of(made, "messages"), HasSubstr(fmt::format("b s h = {} elements", 128 * 256)));
  EXPECT_THAT(text_of(made, "messages"), HasSubstr(fmt::format("{:.0f} bytes", made.work.boundary_bytes)));
  EXPECT_THAT(text_of(made, "tensor"), HasSubstr(fmt::format("= {} elements", 8 * 128 * 256 / 2)));
  EXPECT_THAT(text_of(made, "batch"), HasSubstr("16 = 1 x 8 x 2 sequences"));
}

TEST(Explain, ThePlanOwnCollectivesAreEightBshOverALayer) {
  const Case made = interleaved_case();  // no sequence parallelism: 4 all-reduces of 2 bytes an element
  const double half = 4.0 * 128 * 256 / 2 * 2;
  EXPECT_THAT(text_of(made, "tensor"), HasSubstr(fmt::format("forward {}, recompute 0 B, backward {}",
                                                             format_bytes(half), format_bytes(half))));
}

TEST(Explain, MemoryItemsAreTheReports) {
  const Case made = interleaved_case();
  const std::string text = text_of(made, "memory");
  const RankMemory rank = heaviest_rank(made.report);
  EXPECT_THAT(text, HasSubstr(format_bytes(rank.parameters_bytes)));
  EXPECT_THAT(text, HasSubstr(format_bytes(rank.gradients_bytes)));
  EXPECT_THAT(text, HasSubstr(format_bytes(rank.optimizer_bytes)));
  EXPECT_THAT(text, HasSubstr(format_bytes(rank.peak_bytes)));
}

TEST(Explain, ZeroShardsTheRecipesBytes) {
  const std::string text = text_of(interleaved_case(), "zero");
  for (const char* bytes : {"18.00 bytes", "12.00 bytes", "10.00 bytes", " 9.00 bytes"})
    EXPECT_THAT(text, HasSubstr(bytes));
}

TEST(Explain, FlopsAndRecomputeAreTheReports) {
  const Case made = interleaved_case();
  EXPECT_THAT(text_of(made, "flops"), HasSubstr(fmt::format("= {:.2f} %", 100 * made.report.mfu)));
  EXPECT_THAT(text_of(made, "recompute"), HasSubstr("4/3"));
  EXPECT_THAT(text_of(made, "schedule"), HasSubstr("rank 0: 0F0 0F1"));
}

// 128 tokens of a rank, top-2 of 8 experts over 4 ranks: rows of 256 in 2 bytes. Of 4 ranks with two experts
// each, 4 (1 - C(6, 2) / C(8, 2)) = 1.857 have one of a token's.
TEST(Explain, ExpertsAreTheirClosedForms) {
  Model model = small_model();
  model.experts = Experts{8, 2, 64};
  Plan plan = small_plan(2, 1, 4, 4);
  plan.ep = 4;
  const Case made = make_case(plan, Durations{}, false, model);
  std::vector<KernelTime> kernels(3);
  for (KernelTime& kernel : kernels) {
    kernel.block = "sparse_layer";
    kernel.seconds = 1e-3;
  }
  kernels[0].of_experts = kernels[1].of_experts = true;
  kernels[1].is_collective = true;
  const std::string text = explain("experts", {made.report, made.work, made.schedule, kernels, 0});
  EXPECT_THAT(text, HasSubstr("E = 8, k = 2, width 64; ep = 4"));
  EXPECT_THAT(text, HasSubstr("tokens    128 of a rank x k = 256 per microbatch and layer; 128 for each of "
                              "the 2 experts of a rank"));
  EXPECT_THAT(text, HasSubstr("payload   " + format_bytes(256 * 256 * 2) + " in dispatch"));
  EXPECT_THAT(text, HasSubstr("(ep-1)/ep = 75.0 %"));
  EXPECT_THAT(text, HasSubstr("= 1.86 of n = 4 ranks"));
  EXPECT_THAT(text,
              HasSubstr("layer     3 ms forward and backward, isolated: expert GEMMs 1 ms (33 %), dispatch "
                        "and combine 1 ms (33 %)"));
  EXPECT_THAT(text, HasSubstr("reduced over 1 rank, all others over 4"));
  EXPECT_THAT(text_of(interleaved_case(), "experts"), HasSubstr("This model has no experts"));
}

TEST(Explain, KernelsAreListedByWhatAllTheirRunsTake) {
  const Case made = interleaved_case();
  std::vector<KernelTime> kernels(40);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].block = "layer";
    kernels[i].name = fmt::format("kernel_{}", i);
    kernels[i].runs = 2;
    kernels[i].seconds = 1e-3 * static_cast<double>(i + 1);
  }
  kernels[39].flops = 8e12;
  kernels[38].is_collective = true;
  kernels[38].extrapolated = true;
  const std::string text = explain("kernels", {made.report, made.work, made.schedule, kernels, 3});
  EXPECT_THAT(text, HasSubstr("for one microbatch on stage 3; 1640.000 ms in total"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "   80.000   4.9%     2    40000.0    200.0 TFLOP/s  forward   layer              kernel_39\n"));
  EXPECT_THAT(text, HasSubstr("39000.0*"));
  EXPECT_THAT(text, HasSubstr("kernel_38 (collective)"));
  EXPECT_THAT(text, HasSubstr("  110.000   6.7%  of 10 others"));
  EXPECT_THAT(text, Not(HasSubstr("kernel_9\n")));
}

TEST(MemoryTable, NumbersAreWrittenInRuns) {
  EXPECT_EQ(write_runs({}), "");
  EXPECT_EQ(write_runs({3}), "3");
  EXPECT_EQ(write_runs({0, 1, 2, 4, 6, 7}), "0-2, 4, 6-7");
}

TEST(MemoryTable, HasARowForEachRankAndNamesTheHeaviest) {
  const Case made = interleaved_case();
  const std::string text = write_memory_table(made.report, {"0B0"}, std::nullopt);
  for (const char* part : {"highest    pipeline rank", "during 0B0", "rule of thumb"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("reserved")));
}

TEST(MemoryTable, SaysWhatIsReservedAndWhereFragmentsDoNotFit) {
  Case made = interleaved_case();
  const double peak = heaviest_rank(made.report).peak_bytes;
  made.report.memory[static_cast<std::size_t>(heaviest_rank(made.report).rank)].reserved_bytes = peak + 2e9;
  const auto table = [&] { return write_memory_table(made.report, {"0B0"}, std::nullopt); };
  EXPECT_THAT(table(), HasSubstr("by PyTorch's allocator, 2 GB more than the peak"));
  EXPECT_THAT(table(), Not(HasSubstr("fragmentation")));
  made.report.facts.gpu_memory_bytes = peak + 1e9;
  EXPECT_THAT(table(), HasSubstr("fits only with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, because "
                                 "of memory fragmentation"));
}

TEST(MemoryTable, AddsWhatTheAllocatorDoesNotKnow) {
  Case made = interleaved_case();
  EXPECT_THAT(write_memory_table(made.report, {"0B0"}, std::nullopt),
              HasSubstr("without CUDA context and NCCL buffers"));
  made.report.facts.outside_allocator.assign(made.report.memory.size(),
                                             {1e9, {{"world", 2e9}, {"tp", 0.5e9}}});
  const std::string text = write_memory_table(made.report, {"0B0"}, std::nullopt);
  EXPECT_THAT(text, HasSubstr("CUDA context 1 GB, NCCL buffers 2.5 GB = world 2.00 + tp 0.50"));
  made.report.facts.gpu_memory_bytes = heaviest_rank(made.report).peak_bytes + 3e9;
  EXPECT_THAT(write_memory_table(made.report, {"0B0"}, std::nullopt), HasSubstr("500 MB ("));
  EXPECT_THAT(write_memory_table(made.report, {"0B0"}, std::nullopt), HasSubstr("%) too much"));
  made.report.facts.gpu_memory_bytes += 1e9;
  EXPECT_THAT(write_memory_table(made.report, {"0B0"}, std::nullopt), Not(HasSubstr("too much")));
}

TEST(Sizing, RuleOfThumbIsThatOfTheNotes) {
  EXPECT_NEAR(rule_of_thumb_gpus(70e9, 79.15 * 1024 * 1024 * 1024), 19.7, 0.05);
}

TEST(Sizing, TheFewestGpusFitAndFewerDoNot) {
  Plan plan = small_plan(1, 1, 16);
  const Model model = small_model(8);
  SizingLimits limits{1e12, 0, 4, 0, {}};
  const auto roomy = fewest_gpus(model, plan, limits);
  ASSERT_TRUE(roomy);
  EXPECT_EQ(roomy->plan.gpus(), 1);
  limits.gpu_memory_bytes = 0.99 * roomy->fullest.peak_bytes;
  const auto tight = fewest_gpus(model, plan, limits);
  ASSERT_TRUE(tight);
  EXPECT_GT(tight->plan.gpus(), 1);
  EXPECT_TRUE(tight->fullest.fits());
  EXPECT_LE(tight->plan.tp, 4);
  limits.gpu_memory_bytes = 1;
  EXPECT_FALSE(fewest_gpus(model, plan, limits));
}

TEST(Sizing, CountsWhatLiesBesideTheAllocator) {
  const Plan plan = small_plan(1, 1, 16);
  const Model model = small_model(8);
  SizingLimits limits{1e12, 0, 4, 0, {}};
  limits.gpu_memory_bytes = fewest_gpus(model, plan, limits)->fullest.peak_bytes;
  EXPECT_EQ(fewest_gpus(model, plan, limits)->plan.gpus(), 1);
  limits.outside = [](const Plan& of, const Work&) {
    return std::vector<OutsideAllocator>(static_cast<std::size_t>(of.pp), {of.gpus() > 1 ? 0.0 : 1.0, {}});
  };
  EXPECT_EQ(fewest_gpus(model, plan, limits)->plan.gpus(), 2);
}

TEST(MemorySvg, DrawsEveryRankOnceAndIsTheSameTwice) {
  const Case made = interleaved_case();
  const std::string picture = draw_memory(made.timeline, made.schedule, made.report, made.work);
  EXPECT_EQ(picture, draw_memory(made.timeline, made.schedule, made.report, made.work));
  for (const char* rank : {">rank 0", ">rank 1", ">rank 2", ">rank 3", ", highest"})
    EXPECT_THAT(picture, HasSubstr(rank));
  EXPECT_THAT(picture, ::testing::EndsWith("</svg>\n"));
}

}  // namespace
}  // namespace rehearse
