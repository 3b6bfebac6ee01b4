// Kernels and messages that a plan needs are measured once, saved, and priced at the measured time.
#include "calibrate/timing/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/timing/coverage.h"
#include "calibrate/timing/profile_file.h"
#include "cost/curves.h"
#include "cost/gemm_curve.h"
#include "cost/price.h"
#include "cost/read_profile.h"
#include "plan/work.h"

namespace rehearse {
namespace {

Model small_llama() {
  Model model;
  model.name = "small";
  model.layers = 4;
  model.hidden = 64;
  model.heads = 8;
  model.kv_heads = 8;
  model.head_dim = 8;
  model.ffn_hidden = 80;
  model.vocab = 128;
  model.max_positions = 64;
  return model;
}

Model small_gpt() {
  Model model = small_llama();
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = model.dropout = true;
  return model;
}

Model small_experts() {
  Model model = small_llama();
  model.experts = Experts{8, 2, 32, 48, 1, 1, true};
  return model;
}

Plan small_plan() {
  Plan plan;
  plan.precision = Precision::fp32;
  plan.seq = 32;
  plan.micro_batch = 2;
  plan.global_batch = 8;
  return plan;
}

Cluster cpu_node() {
  return read_cluster("cpu-node");
}

CalibrationRequest request_for(const Model& model, const Plan& plan) {
  CalibrationRequest request;
  request.cluster = cpu_node();
  request.jobs = jobs_of(model, plan);
  request.cache = Cache::warm;
  request.budget_s = 1e-4;
  request.stopped = [] { return false; };
  return request;
}

Profile empty_profile() {
  Profile profile;
  profile.name = "test";
  profile.gpu.name = "CPU core";
  profile.how = How::measured;
  profile.sources = {{"test", "", ""}};
  return profile;
}

TEST(Calibration, OfAPipelinePricesItWholly) {
  Plan plan = small_plan();
  plan.pp = 2;
  const Model model = small_gpt();
  const auto device = kernels::open_cpu();
  const CalibrationRequest request = request_for(model, plan);
  const Calibration done = calibrate(*device, request, empty_profile());
  EXPECT_TRUE(done.complete);
  EXPECT_THAT(done.above_peak, testing::IsEmpty());
  const Missing missing = missing_of(done.profile, request.jobs);
  EXPECT_TRUE(missing.kernels.empty() && missing.messages.empty());
  const Prices prices = price(make_work(model, plan), plan, request.cluster, done.profile);
  EXPECT_GT(prices.priced_s, 0);
  EXPECT_EQ(prices.extrapolated_s, 0);
}

TEST(Calibration, IsReadBackAsItWasWritten) {
  const auto device = kernels::open_cpu();
  const CalibrationRequest request = request_for(small_llama(), small_plan());
  const Calibration done = calibrate(*device, request, empty_profile());
  const Json json = profile_json(done.profile, request.cluster.gpu);
  const Profile read = parse_profile(JsonReader(json, "profile.json"));
  EXPECT_EQ(profile_json(read, request.cluster.gpu), json);
  const Missing missing = missing_of(read, request.jobs);
  EXPECT_THAT(missing.kernels, testing::IsEmpty());
  for (const GemmSample& sample : done.profile.gemm.at("fp32")) {
    const Estimate estimate =
        gemm_time(read, request.cluster.gpu, Gemm{sample.m, sample.n, sample.k, sample.batch}, "fp32");
    EXPECT_FALSE(estimate.extrapolated);
    // m x n and n x m are one point of the curve.
    if (sample.m == sample.n) {
      EXPECT_NEAR(estimate.seconds / std::max(read.launch_s, sample.seconds), 1, 1e-5);
    }
  }
}

TEST(Calibration, ContinuesWhereItWasStopped) {
  const auto device = kernels::open_cpu();
  CalibrationRequest request = request_for(small_llama(), small_plan());
  int left = 7;
  request.progress = [&](const std::string&, std::size_t, std::size_t, double) { --left; };
  request.stopped = [&] { return left <= 0; };
  const Calibration part = calibrate(*device, request, empty_profile());
  EXPECT_FALSE(part.complete);
  EXPECT_FALSE(missing_of(part.profile, request.jobs).kernels.empty());

  request.stopped = [] { return false; };
  const Calibration rest = calibrate(*device, request, part.profile);
  EXPECT_TRUE(rest.complete);
  EXPECT_GT(rest.known, 0U);
  EXPECT_TRUE(missing_of(rest.profile, request.jobs).kernels.empty());
  EXPECT_EQ(calibrate(*device, request, rest.profile).measured, 0U);
}

TEST(Calibration, RefusesAGemmAboveThePeak) {
  const auto device = kernels::open_cpu();
  CalibrationRequest request = request_for(small_llama(), small_plan());
  request.cluster.gpu.peak_flops["fp32"] = 1e6;
  bool saved = false;
  request.save = [&](const Profile&) { saved = true; };
  const Calibration done = calibrate(*device, request, empty_profile());
  EXPECT_THAT(done.above_peak, testing::Contains(testing::HasSubstr("CPU core has a peak of")));
  EXPECT_FALSE(saved);
}

struct PlanCase {
  const char* name;
  Model (*model)();
  void (*change)(Plan&);
};

void PrintTo(const PlanCase& plan, std::ostream* out) {
  *out << plan.name;
}

class EveryKernel : public testing::TestWithParam<PlanCase> {};

// No kernel of such a plan is unknown to the device.
TEST_P(EveryKernel, OfThePlanCanBeTimed) {
  Plan plan = small_plan();
  GetParam().change(plan);
  const Model model = GetParam().model();
  ASSERT_THAT(broken_rules(plan, model, plan.gpus()), testing::IsEmpty());
  const auto device = kernels::open_cpu();
  CalibrationRequest request = request_for(model, plan);
  request.jobs.messages.clear();
  const Calibration done = calibrate(*device, request, empty_profile());
  EXPECT_TRUE(missing_of(done.profile, request.jobs).kernels.empty())
      << (done.notes.empty() ? "" : done.notes.back());
}

INSTANTIATE_TEST_SUITE_P(Plans, EveryKernel,
                         testing::Values(PlanCase{"TensorParallel", small_gpt, [](Plan& p) { p.tp = 2; }},
                                         PlanCase{"SequenceParallelInChunks", small_llama,
                                                  [](Plan& p) {
                                                    p.tp = 4;
                                                    p.sequence_parallel = p.tp_comm_overlap = true;
                                                  }},
                                         PlanCase{"UnfusedWithRecompute", small_gpt,
                                                  [](Plan& p) {
                                                    p.fused_attention = false;
                                                    p.recompute = Recompute::selective;
                                                  }},
                                         PlanCase{"ContextRing", small_llama, [](Plan& p) { p.cp = 4; }},
                                         PlanCase{"ContextGather", small_llama,
                                                  [](Plan& p) {
                                                    p.cp = 2;
                                                    p.cp_exchange = ContextExchange::gather;
                                                  }},
                                         PlanCase{"ContextAllToAll", small_llama,
                                                  [](Plan& p) {
                                                    p.cp = 2;
                                                    p.cp_exchange = ContextExchange::all_to_all;
                                                  }},
                                         PlanCase{"Experts", small_experts, [](Plan&) {}},
                                         PlanCase{"ExpertParallel", small_experts,
                                                  [](Plan& p) {
                                                    p.dp = 4;
                                                    p.ep = 4;
                                                  }}),
                         [](const auto& plan) { return plan.param.name; });

TEST(Jobs, TimeEachDistinctKernelOnce) {
  const Jobs jobs = jobs_of(small_llama(), small_plan());
  for (std::size_t i = 1; i < jobs.kernels.size(); ++i) {
    EXPECT_LE(jobs.kernels[i - 1].key, jobs.kernels[i].key);
  }
  const auto count = [&](const SampleKey& key) {
    return std::count_if(jobs.kernels.begin(), jobs.kernels.end(),
                         [&](const KernelJob& job) { return job.key == key; });
  };
  EXPECT_EQ(count({SampleKey::Table::gemm, "fp32", {64, 3 * 64, 64, 1}}), 1);  // qkv
  EXPECT_EQ(count({SampleKey::Table::gemm, "fp32/input_gradient", {64, 64, 3 * 64, 1}}), 1);
  EXPECT_EQ(count({SampleKey::Table::attention, "", {8, 32, 1, 0}}), 1);
  // Projection, its input gradient and its weight gradient are all 64 x 64 x 64 here, each with a layout of
  // its own.
  for (const GemmPass pass : {GemmPass::forward, GemmPass::input_gradient, GemmPass::weight_gradient})
    EXPECT_EQ(count({SampleKey::Table::gemm, gemm_key("fp32", {pass}), {64, 64, 64, 1}}), 1);
}

TEST(Jobs, HoldTheMessagesOfEveryGroup) {
  Plan plan = small_plan();
  plan.tp = 2;
  plan.pp = 2;
  plan.dp = 2;
  const Jobs jobs = jobs_of(small_llama(), plan);
  EXPECT_THAT(jobs.messages, testing::Contains(MessageJob{CollectiveOp::all_reduce, 2, 64.0 * 64 * 4}));
  EXPECT_THAT(jobs.messages, testing::Contains(MessageJob{CollectiveOp::send_receive, 2, 64.0 * 64 * 4}));
}

TEST(Jobs, HoldTheGradientsOfExpertsAmongThoseWhoHoldThem) {
  Plan plan = small_plan();
  plan.dp = 4;
  plan.ep = 2;
  const Model model = small_experts();
  const Work work = make_work(model, plan);
  const double experts = work.expert_parameters(0), dense = work.parameters(0) - experts;
  const Jobs jobs = jobs_of(model, plan);
  EXPECT_THAT(jobs.messages, testing::Contains(MessageJob{CollectiveOp::all_reduce, 2, 4 * experts}));
  EXPECT_THAT(jobs.messages, testing::Contains(MessageJob{CollectiveOp::all_reduce, 4, 4 * dense}));
}

TEST(Jobs, HoldTheGradientOfAnEmbeddingThatTwoRanksShare) {
  Plan plan = small_plan();
  plan.pp = 2;
  Model model = small_gpt();
  const MessageJob shared{CollectiveOp::all_reduce, 2, 128.0 * 64 * 4};
  EXPECT_THAT(jobs_of(model, plan).messages, testing::Not(testing::Contains(shared)));
  model.tied_embeddings = true;
  EXPECT_THAT(jobs_of(model, plan).messages, testing::Contains(shared));
  plan.pp = 1;
  EXPECT_THAT(jobs_of(model, plan).messages, testing::IsEmpty());
}

TEST(Compare, FindsTheSamplesThatDiffer) {
  Profile a = empty_profile(), b = empty_profile();
  a.gemm["fp32"] = {{8, 8, 8, 1e-6, 1, 0.01}, {16, 8, 8, 2e-6, 1, 0.01}};
  b.gemm["fp32"] = {{8, 8, 8, 1.5e-6, 1, 0.01}, {32, 8, 8, 4e-6, 1, 0.01}};
  const std::vector<Agreement> all = compare(a, b);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_NEAR(all[0].ratio, 1.5, 1e-12);
  EXPECT_NEAR(all[0].spread, 0.02, 1e-12);
}

TEST(DrawRates, NamesEveryTable) {
  Profile profile = empty_profile();
  profile.gemm["fp32"] = {{8, 8, 8, 1e-6}};
  profile.stream["norm"] = {{1e3, 1e9}, {1e6, 2e9}};
  profile.attention = {{64, 1024, true, false, 1e14, 0, 16}, {64, 1024, true, true, 1e14, 0, 0}};
  const std::string svg = draw_rates(profile);
  EXPECT_THAT(svg, testing::HasSubstr("attention forward"));
  EXPECT_THAT(svg, testing::Not(testing::HasSubstr("attention backward"))) << "of how many heads?";
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, testing::HasSubstr("gemm fp32"));
  EXPECT_THAT(svg, testing::HasSubstr(">norm<"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

TEST(DrawRates, HasRoomForTheLongestName) {
  constexpr double kLetter = 7;  // wide on average, of 12 px sans serif
  Profile profile = empty_profile();
  const std::string name = "gemm " + gemm_key("fp32", {GemmPass::weight_gradient, true});
  profile.gemm[name.substr(5)] = {{8, 8, 8, 1e-6}};
  const std::string svg = draw_rates(profile);
  const std::size_t text = svg.rfind("<text x=\"", svg.find(">" + name + "<"));
  const double x = std::stod(svg.substr(text + 9)), width = std::stod(svg.substr(svg.find("width=\"") + 7));
  EXPECT_LE(x + kLetter * static_cast<double>(name.size()), width);
}

// Profiles without a curve of their own for a kind are read as before.
TEST(PointwiseTime, TakesTheKindsOwnCurveBeforeItsForwards) {
  Profile profile = empty_profile();
  profile.stream["norm"] = {{1e6, 1e9}};
  profile.stream["copy"] = {{1e6, 2e9}};
  const Gpu gpu = cpu_node().gpu;
  EXPECT_NEAR(pointwise_time(profile, gpu, Pointwise::norm_backward, 1e6).seconds, 1e-3, 1e-12);
  EXPECT_NEAR(pointwise_time(profile, gpu, Pointwise::adam, 1e6).seconds, 0.5e-3, 1e-12);
  profile.stream["norm_backward"] = {{1e6, 4e9}};
  EXPECT_NEAR(pointwise_time(profile, gpu, Pointwise::norm_backward, 1e6).seconds, 0.25e-3, 1e-12);
}

// Whose clock falls by a tenth of its first number for each look, to half of it.
class Tiring : public kernels::Device {
 public:
  explicit Tiring(double first_hz) : first_hz_(first_hz) {}
  kernels::DeviceFacts facts() const override { return cpu_->facts(); }
  void* allocate(std::size_t bytes, kernels::Place place) override { return cpu_->allocate(bytes, place); }
  void release(void* memory, kernels::Place place) override { cpu_->release(memory, place); }
  std::unique_ptr<kernels::Stream> make_stream() override { return cpu_->make_stream(); }
  double clock_hz() override { return first_hz_ * std::max(0.5, 1 - 0.1 * looks_++); }

 private:
  std::unique_ptr<kernels::Device> cpu_ = kernels::open_cpu(1);
  double first_hz_;
  int looks_ = 0;
};

TEST(Calibration, SaysThatTheClockFellWhileProductsWereTimed) {
  Tiring device(2e9);
  const CalibrationRequest request = request_for(small_llama(), small_plan());
  const Calibration result = calibrate(device, request, empty_profile());
  EXPECT_THAT(result.notes,
              testing::Contains(testing::AllOf(testing::HasSubstr("limits on power act"),
                                               testing::HasSubstr("below 2.00 GHz, at 1.00 after "))));
  EXPECT_THAT(result.notes, testing::Contains("the clock moved from 2.00 to 1.00 GHz"));
}

TEST(Calibration, SaysNothingOfAClockThatIsNotKnown) {
  Tiring device(0);
  const Calibration result = calibrate(device, request_for(small_llama(), small_plan()), empty_profile());
  EXPECT_THAT(result.notes, testing::Each(testing::Not(testing::HasSubstr("clock"))));
}

}  // namespace
}  // namespace rehearse
