// bf16: every plan trains as one rank in bf16 does, and that one as one in fp32.
//
// How far apart two such runs may be. bf16 has 8 significant bits: a rounding changes a number by a share
// u = 2^-8 of it at most. Of R roundings one after the other, each independent of the others, sqrt(R) u comes
// together, and sqrt(2 R) u between two runs that round elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "kernels/short_float.h"
#include "same_training.h"

namespace rehearse {
namespace {

constexpr double kClip = 0.1;  // below the norm of these networks' gradients
constexpr double kRounding = 0x1p-8;
constexpr std::array kRecipes = {Recipe::megatron, Recipe::zero, Recipe::sagemaker, Recipe::deepspeed_bf16,
                                 Recipe::nanotron, Recipe::fsdp, Recipe::bf16};

Plan in_bf16(Plan plan, Recipe recipe = Recipe::megatron) {
  plan.precision = Precision::bf16;
  plan.recipe = recipe;
  return plan;
}

double apart(double roundings) {
  return std::sqrt(2 * roundings) * kRounding;
}

// Between two gradients of a parameter: each of `sums` parts, tied tables two of a microbatch, is added to
// those before and rounded.
double apart_when_summed(const Plan& plan) {
  return apart(static_cast<double>(2 * plan.global_batch + plan.dp));
}

// The same when every result on the way from the tokens to the loss and back is rounded elsewhere.
double apart_when_computed(const Training& training) {
  double kernels = 0;
  for (const std::vector<Repeated>& part : training.work.parts)
    for (const Repeated& repeated : part) {
      const Block& block = training.work.blocks[static_cast<std::size_t>(repeated.block)];
      const std::size_t each = block.forward.size() + block.backward_input.size();
      kernels += static_cast<double>(repeated.repeats) * static_cast<double>(each);
    }
  return apart(kernels + static_cast<double>(2 * training.plan.global_batch));
}

// What is split is summed elsewhere, in products or between microbatches; where nothing is, numbers differ in
// the order of fp32 sums alone.
double gradients_apart(const Training& one, const Plan& plan) {
  const StateTypes types = state_types(plan);
  const bool tied_part_by_part = one.model.tied_embeddings && types.fresh_gradient != types.gradient;
  if (plan.tp * plan.cp > 1) return apart_when_computed(one);
  if (kernels::is_short(types.gradient) || kernels::is_short(types.wire) || tied_part_by_part)
    return apart_when_summed(plan);
  return kTolerance;
}

// A loss is a mean over the tokens' of what their logits say, which are below 1 here.
double losses_apart(const Training& one) {
  return apart_when_computed(one) / std::sqrt(static_cast<double>(one.plan.global_batch * one.plan.seq));
}

// The second step has weights of which some have been rounded up that were rounded down in the other run.
void expect_same_training_in_bf16(Crew& crew, const Training& training) {
  const Training alone = training_of(training.model, rehearse::alone(training.plan));
  Crew one(alone, {10, {}});
  const double near = gradients_apart(alone, training.plan), far = apart_when_computed(alone);
  ASSERT_LT(far, 1.0 / 8) << "a lost microbatch would not be seen";
  std::string where;
  for (int step = 0; step < 2; ++step) {
    const StepResult expected = one.step(), found = crew.step();
    EXPECT_NEAR(found.loss, expected.loss, step == 0 ? near : losses_apart(alone)) << "step " << step;
    EXPECT_NEAR(found.gradient_norm, expected.gradient_norm,
                (step == 0 ? near : far) * expected.gradient_norm);
    EXPECT_LT(largest_error(crew.gradients(), one.gradients(), where), step == 0 ? near : far) << where;
  }
}

void expect_same_training_in_bf16(const Model& model, const Plan& plan) {
  ASSERT_TRUE(broken_rules(plan, model, plan.gpus()).empty());
  const Training training = training_of(model, plan, 3);
  Crew crew(training, {10, {}});
  expect_same_training_in_bf16(crew, training);
}

struct Mixed {
  Plan plan;
  bool tied = false;

  Model model() const { return tied ? tiny_gpt() : tiny_llama(); }
};

std::string name_of(const Mixed& mixed) {
  const Plan& plan = mixed.plan;
  std::string name = to_string(plan.recipe) + "_" + to_string(plan.schedule) + "_tp" +
                     std::to_string(plan.tp) + "_pp" + std::to_string(plan.pp) + "_dp" +
                     std::to_string(plan.dp) + "_zero" + std::to_string(plan.zero) + "_sums_" +
                     to_string(plan.grad_reduce) + (mixed.tied ? "_gpt" : "_llama");
  std::ranges::replace(name, '-', '_');
  return name;
}

void PrintTo(const Mixed& mixed, std::ostream* out) {
  *out << name_of(mixed);
}

// Every 61st of all that fit eight ranks: a prime, so that all choices meet each other.
std::vector<Mixed> mixes() {
  constexpr int kEvery = 61;
  std::vector<Mixed> some;
  int legal = 0;
  for (const ScheduleName schedule : {ScheduleName::one_f_one_b, ScheduleName::interleaved,
                                      ScheduleName::zb_h1, ScheduleName::zb_v, ScheduleName::gpipe})
    for (const int tp : {1, 2, 4})
      for (const int pp : {1, 2, 4})
        for (const int dp : {1, 2, 4})
          for (const int zero : {0, 1, 2, 3})
            for (const Precision wire : {Precision::fp32, Precision::bf16})
              for (const Recipe recipe : kRecipes)
                for (const bool tied : {false, true}) {
                  Mixed mixed{in_bf16(plan_of(schedule, tp, pp, dp), recipe), tied};
                  Plan& plan = mixed.plan;
                  plan.zero = zero;
                  plan.grad_reduce = wire;
                  plan.clip_grad = kClip;
                  plan.sequence_parallel = tp > 1;
                  plan.framework = Framework::torchtitan;
                  const bool one_replica = dp == 1 && (zero > 0 || wire == Precision::bf16);
                  if (plan.gpus() > 8 || one_replica || !not_executable(mixed.model(), plan).empty() ||
                      !broken_rules(plan, mixed.model(), plan.gpus()).empty())
                    continue;
                  if (legal++ % kEvery == 0) some.push_back(mixed);
                }
  return some;
}

class Bf16 : public testing::TestWithParam<Mixed> {};

TEST_P(Bf16, TrainsAsOneRankInBf16Does) {
  expect_same_training_in_bf16(GetParam().model(), GetParam().plan);
}

INSTANTIATE_TEST_SUITE_P(Some, Bf16, testing::ValuesIn(mixes()),
                         [](const auto& mixed) { return name_of(mixed.param); });

TEST(Bf16Context, TrainsAsOneRankInBf16Does) {
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all}) {
    SCOPED_TRACE(to_string(exchange));
    Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 1, 2, 1));
    plan.cp = 2;
    plan.cp_exchange = exchange;
    plan.micro_batch = 2;
    expect_same_training_in_bf16(tiny_llama(), plan);
  }
}

TEST(Bf16Shards, OfGroupsAreSummed) {
  for (const Precision wire : {Precision::fp32, Precision::bf16}) {
    Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 1, 1, 4), Recipe::fsdp);
    plan.framework = Framework::fsdp;
    plan.zero = 3;
    plan.zero_shard = 2;
    plan.grad_reduce = wire;
    expect_same_training_in_bf16(tiny_gpt(), plan);
  }
}

// Rows travel in 16 bits, the router's weights and their gradients in fp32.
TEST(Bf16Experts, TrainAsOneRankInBf16Does) {
  for (const int zero : {0, 1}) {
    Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 1, 1, 4));
    plan.ep = 2;
    plan.zero = zero;
    expect_same_training_in_bf16(tiny_mixtral(), plan);
  }
  Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 2, 2, 1));
  plan.sequence_parallel = true;
  plan.etp = 2;
  expect_same_training_in_bf16(tiny_mixtral(), plan);
}

TEST(Bf16Dropout, DrawsTheSame) {
  Model model = tiny_gpt();
  model.dropout = true;
  expect_same_training_in_bf16(model, in_bf16(plan_of(ScheduleName::one_f_one_b, 2, 2, 1)));
}

// As ranks on parts of one GPU do it, with a CPU in its place.
TEST(Bf16DeviceCopies, TrainAsOneRankInBf16Does) {
  Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 2, 2, 2), Recipe::zero);
  plan.zero = 1;
  plan.grad_reduce = Precision::bf16;
  Site site;
  std::vector<kernels::Device*> devices;
  for (int rank = 0; rank < plan.gpus(); ++rank)
    devices.push_back(site.devices.emplace_back(kernels::open_cpu()).get());
  site.worlds = kernels::open_device_worlds(devices);
  const Training training = training_of(tiny_llama(), plan);
  Crew crew(training, {10, {}}, std::move(site));
  expect_same_training_in_bf16(crew, training);
}

TEST(Bf16Kernels, OneForEachOperationTrainAsOneRankInBf16Does) {
  Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 2, 1, 1));
  plan.fused_cross_entropy = plan.fused_attention = false;
  for (const Model& model : {tiny_gpt(), tiny_llama()}) expect_same_training_in_bf16(model, plan);
}

// What is made again from the same 16 bits is the same, to the last of them.
TEST(Bf16Recompute, ChangesNothing) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    Plan plan = in_bf16(plan_of(ScheduleName::zb_h1, 2, 2, 1));
    Crew kept(training_of(model, plan), {10, {}});
    const double loss = kept.step().loss;
    for (const Recompute recompute : {Recompute::full, Recompute::selective}) {
      plan.recompute = recompute;
      Crew rerun(training_of(model, plan), {10, {}});
      EXPECT_EQ(rerun.step().loss, loss);
      std::string where;
      EXPECT_EQ(largest_error(rerun.gradients(), kept.gradients(), where), 0) << where;
    }
  }
}

// Sums of shards are those of the whole, and a shard's step is its part of the whole's.
TEST(Bf16Shards, StepAsTheWholeDoes) {
  WholeTensors expected;
  for (const int zero : {0, 1, 2, 3}) {
    Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 1, 1, 2));
    plan.zero = zero;
    plan.framework = Framework::torchtitan;
    plan.reduce_each_microbatch = false;
    Crew crew(training_of(tiny_llama(), plan), {10, {}});
    for (int step = 0; step < 3; ++step) crew.step();
    if (zero == 0) expected = crew.master_weights();
    std::string where;
    EXPECT_EQ(largest_error(crew.master_weights(), expected, where), 0) << "ZeRO " << zero << ": " << where;
  }
}

TEST(Bf16Weights, AreTheirMastersRounded) {
  for (const Recipe recipe : kRecipes) {
    SCOPED_TRACE(to_string(recipe));
    Plan plan = in_bf16(plan_of(ScheduleName::one_f_one_b, 1, 2, 2), recipe);
    plan.zero = 1;
    Crew crew(training_of(tiny_llama(), plan), {10, {}});
    const WholeTensors first = crew.parameters();
    for (int step = 0; step < 2; ++step) {
      const WholeTensors weights = crew.parameters(), masters = crew.master_weights();
      EXPECT_EQ(masters.size(), recipe == Recipe::bf16 ? 0 : weights.size());
      for (const auto& [name, master] : masters)
        for (std::size_t i = 0; i < master.size(); ++i)
          ASSERT_EQ(weights.at(name)[i], float{kernels::Bf16(master[i])}) << name << " after step " << step;
      crew.step();
    }
    std::string where;
    EXPECT_GT(largest_error(crew.parameters(), first, where), kRounding);
  }
}

// Rounded activations and gradients move the losses, but not where they go.
TEST(Bf16Training, FollowsTheLossesOfFp32Down) {
  for (const Recipe recipe : kRecipes) {
    SCOPED_TRACE(to_string(recipe));
    const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 1);
    const Training wide = training_of(tiny_llama(), plan);
    Crew fp32(wide, {10, {}}), bf16(training_of(tiny_llama(), in_bf16(plan, recipe)), {10, {}});
    const double tolerance = losses_apart(wide);
    double first = 0, last = 0;
    for (int step = 0; step < 10; ++step) {
      last = fp32.step().loss;
      if (step == 0) first = last;
      EXPECT_NEAR(bf16.step().loss, last, tolerance) << "step " << step;
    }
    EXPECT_GT(first - last, 10 * tolerance) << "what does not learn would follow too";
  }
}

// All but the loss, its logits and the log-sum-exps of attention have two bytes instead of four.
TEST(Bf16Activations, TakeTheirBytesInTheWork) {
  const auto peak = [](const Plan& plan) {
    Model model = tiny_llama();
    model.vocab = 8;
    Crew crew(training_of(model, plan), {10, {}});
    crew.step();
    return crew.peak_activation_bytes().front();
  };
  const Plan plan = plan_of(ScheduleName::gpipe, 1, 1, 1);
  EXPECT_LT(peak(in_bf16(plan)), 0.56 * peak(plan));
  EXPECT_GE(peak(in_bf16(plan)), 0.5 * peak(plan));
}

TEST(Bf16Gathered, TakesTwoBytesAParameter) {
  const auto gathered = [](Plan plan) {
    plan.zero = 3;
    Crew crew(training_of(tiny_llama(), plan), {10, {}});
    crew.step();
    return crew.peak_gathered_bytes().front();
  };
  const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 2);
  for (const Recipe recipe : {Recipe::megatron, Recipe::fsdp})
    EXPECT_EQ(gathered(in_bf16(plan, recipe)), 0.5 * gathered(plan));
}

}  // namespace
}  // namespace rehearse
