// Every plan gives the results of one rank: loss, gradients and, step after step, the same training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "plan/sharding.h"
#include "same_training.h"

namespace rehearse {
namespace {

constexpr double kClip = 0.1;  // below the norm of these networks' gradients

struct Split {
  ScheduleName schedule;
  int tp, pp, dp;
  bool sequence_parallel;
};

std::string name_of(const Split& split) {
  std::string name = to_string(split.schedule) + "_tp" + std::to_string(split.tp) +
                     (split.sequence_parallel ? "_sp" : "") + "_pp" + std::to_string(split.pp) + "_dp" +
                     std::to_string(split.dp);
  std::ranges::replace(name, '-', '_');
  return name;
}

void PrintTo(const Split& split, std::ostream* out) {
  *out << name_of(split);
}

// All splits that fit eight ranks.
std::vector<Split> splits() {
  std::vector<Split> all;
  for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b,
                                      ScheduleName::interleaved, ScheduleName::zb_h1, ScheduleName::zb_v})
    for (const int tp : {1, 2, 4})
      for (const int pp : {1, 2, 4})
        for (const int dp : {1, 2, 4})
          for (const bool sequence_parallel : {false, true}) {
            const bool two_chunks = schedule == ScheduleName::interleaved || schedule == ScheduleName::zb_v;
            if (tp * pp * dp > 8 || (two_chunks && pp != 2) || (sequence_parallel && tp == 1)) continue;
            if (schedule == ScheduleName::zb_v && dp > 1) continue;
            all.push_back({schedule, tp, pp, dp, sequence_parallel});
          }
  return all;
}

class Splits : public testing::TestWithParam<Split> {};

TEST_P(Splits, TrainAsOneRankDoes) {
  const Split& split = GetParam();
  Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
  plan.sequence_parallel = split.sequence_parallel;
  plan.clip_grad = kClip;
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    SCOPED_TRACE(model.name);
    ASSERT_TRUE(broken_rules(plan, model, plan.gpus()).empty());
    expect_same_training(training_of(model, plan), model);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Splits, testing::ValuesIn(splits()),
                         [](const auto& split) { return name_of(split.param); });

// How state is divided among replicas, and when it is exchanged.
struct Sharded {
  ScheduleName schedule;
  int tp, pp, dp, zero;
  bool each_microbatch, reshard;
};

std::string name_of(const Sharded& split) {
  return name_of(Split{split.schedule, split.tp, split.pp, split.dp, split.tp > 1}) + "_zero" +
         std::to_string(split.zero) + (split.each_microbatch ? "_each_microbatch" : "") +
         (split.reshard ? "_reshard" : "");
}

void PrintTo(const Sharded& split, std::ostream* out) {
  *out << name_of(split);
}

Plan plan_of(const Sharded& split) {
  Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
  plan.sequence_parallel = split.tp > 1;
  plan.clip_grad = kClip;
  plan.zero = split.zero;
  plan.framework = Framework::torchtitan;
  plan.reduce_each_microbatch = split.each_microbatch;
  plan.reshard_after_forward = split.reshard;
  return plan;
}

// All that fit eight ranks.
std::vector<Sharded> shardings() {
  std::vector<Sharded> all;
  for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b,
                                      ScheduleName::interleaved, ScheduleName::zb_h1, ScheduleName::zb_v})
    for (const int tp : {1, 2, 4})
      for (const int pp : {1, 2, 4})
        for (const int dp : {2, 4, 8})
          for (const int zero : {1, 2, 3})
            for (const bool each_microbatch : {false, true})
              for (const bool reshard : {false, true}) {
                const Sharded split{schedule, tp, pp, dp, zero, each_microbatch, reshard};
                const bool says_nothing = (zero < 2 && each_microbatch) || (zero < 3 && reshard);
                if (tp * pp * dp <= 8 && !says_nothing && runs(plan_of(split), tiny_llama()))
                  all.push_back(split);
              }
  return all;
}

class Shardings : public testing::TestWithParam<Sharded> {};

TEST_P(Shardings, TrainAsOneRankDoes) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    SCOPED_TRACE(model.name);
    if (runs(plan_of(GetParam()), model))
      expect_same_training(training_of(model, plan_of(GetParam()), 3), model);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Shardings, testing::ValuesIn(shardings()),
                         [](const auto& split) { return name_of(split.param); });

TEST(Zero1, GathersAfterTheStepOrBesideTheNextForward) {
  for (const bool overlap : {false, true}) {
    for (const bool gathers_late : {false, true}) {
      Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 2, 2);
      plan.zero = 1;
      plan.overlap_grad_reduce = overlap;
      plan.overlap_param_gather = gathers_late;
      for (const Model& model : {tiny_gpt(), tiny_llama()}) {
        SCOPED_TRACE(model.name);
        ASSERT_TRUE(broken_rules(plan, model, plan.gpus()).empty());
        expect_same_training(training_of(model, plan, 3), model, 3);
      }
    }
  }
}

TEST(ShardingGroups, SumTheirShards) {
  for (const int zero : {1, 2, 3}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 1, 4);
    plan.framework = Framework::fsdp;
    plan.zero = zero;
    plan.zero_shard = 2;
    for (const Model& model : {tiny_gpt(), tiny_llama()}) {
      SCOPED_TRACE(model.name);
      ASSERT_TRUE(broken_rules(plan, model, plan.gpus()).empty());
      expect_same_training(training_of(model, plan), model);
    }
  }
}

// ZeRO-3 of DeepSpeed of 2021 sums whole gradients on every rank, which keeps its shard.
TEST(WholeSums, TrainAsOneRankDoes) {
  Plan plan = plan_of(ScheduleName::gpipe, 1, 1, 4);
  plan.framework = Framework::deepspeed_2021;
  plan.zero = 3;
  ASSERT_FALSE(scatters_gradients(plan));
  expect_as_one_rank(plan, tiny_gpt());
}

TEST(Clipping, FindsTheNormOfAllGradients) {
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 2, 2);
    plan.clip_grad = kClip;
    RankPool rank_pool(training_of(model, plan), {10, {}});
    const double found = rank_pool.step().gradient_norm;
    double squares = 0;
    for (const auto& [name, gradient] : rank_pool.gradients())
      for (const float element : gradient) squares += double{element} * double{element};
    EXPECT_GT(found, kClip);
    EXPECT_NEAR(found, std::sqrt(squares), kTolerance * found);
  }
}

// Adam's step depends on the size of gradients only where they are not large compared with its epsilon.
TEST(Clipping, ReachesTheStepWhereTheNormIsAboveTheLimitOnly) {
  const auto change = [](double clip) {
    Plan plan = plan_of(ScheduleName::one_f_one_b, 2, 1, 1);
    plan.clip_grad = clip;
    RankPool rank_pool(training_of(tiny_llama(), plan), {10, {}});
    const WholeTensors before = rank_pool.parameters();
    rank_pool.step();
    std::string where;
    return largest_error(rank_pool.parameters(), before, where);
  };
  EXPECT_EQ(change(100), change(0));
  EXPECT_LT(change(1e-9), 0.01 * change(0));
}

// The code path of ranks on partitions of one GPU, with a CPU in its place.
TEST(DeviceCopies, TrainAsOneRankDoes) {
  for (const Split& split : splits()) {
    if (split.tp > 2 || split.dp > 2) continue;
    SCOPED_TRACE(name_of(split));
    Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
    plan.sequence_parallel = split.sequence_parallel;
    DeviceSet device_set;
    std::vector<kernels::Device*> devices;
    for (int rank = 0; rank < plan.gpus(); ++rank)
      devices.push_back(device_set.devices.emplace_back(kernels::open_cpu()).get());
    device_set.worlds = kernels::open_device_worlds(devices);
    RankPool rank_pool(training_of(tiny_llama(), plan), {10, {}}, std::move(device_set));
    expect_same_training(rank_pool, training_of(tiny_llama(), alone(plan)));
  }
}

TEST(OneQueue, TrainsAsOneRankDoes) {
  for (const Split& split : splits()) {
    if (split.tp > 2 || split.dp > 2) continue;
    SCOPED_TRACE(name_of(split));
    Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
    plan.sequence_parallel = split.sequence_parallel;
    plan.one_queue = true;
    expect_same_training(training_of(tiny_llama(), plan), tiny_llama());
  }
}

struct Context {
  ContextExchange exchange;
  int cp, tp, pp, dp, zero;
};

std::string name_of(const Context& split) {
  return to_string(split.exchange) + "_cp" + std::to_string(split.cp) + "_tp" + std::to_string(split.tp) +
         "_pp" + std::to_string(split.pp) + "_dp" + std::to_string(split.dp) + "_zero" +
         std::to_string(split.zero);
}

void PrintTo(const Context& split, std::ostream* out) {
  *out << name_of(split);
}

std::vector<Context> contexts() {
  std::vector<Context> all;
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all})
    for (const int cp : {2, 4})
      for (const int tp : {1, 2})
        for (const int pp : {1, 2})
          for (const int dp : {1, 2})
            for (const int zero : {0, 1, 3})
              if (cp * tp * pp * dp <= 8 && (zero < 3 || pp == 1))
                all.push_back({exchange, cp, tp, pp, dp, zero});
  return all;
}

class Contexts : public testing::TestWithParam<Context> {};

TEST_P(Contexts, TrainAsOneRankDoes) {
  const Context& split = GetParam();
  Plan plan = plan_of(ScheduleName::one_f_one_b, split.tp, split.pp, split.dp);
  plan.cp = split.cp;
  plan.cp_exchange = split.exchange;
  plan.sequence_parallel = split.tp > 1;
  plan.zero = split.zero;
  plan.clip_grad = kClip;
  plan.micro_batch = 2;
  for (const Model& model : {tiny_gpt(), tiny_llama()}) {
    SCOPED_TRACE(model.name);
    if (!broken_rules(plan, model, plan.gpus()).empty()) continue;  // heads that cannot be split further
    expect_same_training(training_of(model, plan), model);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Contexts, testing::ValuesIn(contexts()),
                         [](const auto& split) { return name_of(split.param); });

TEST(Contexts, TrainAsOneRankDoesWhenTheyRunAttentionAgain) {
  for (const ContextExchange exchange :
       {ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all})
    for (const Recompute recompute : {Recompute::selective, Recompute::op, Recompute::full}) {
      Plan plan = plan_of(ScheduleName::zb_h1, 1, 2, 1);
      plan.cp = 2;
      plan.cp_exchange = exchange;
      plan.recompute = recompute;
      expect_same_training(training_of(tiny_llama(), plan), tiny_llama());
    }
}

TEST(UnevenStages, TrainAsOneRankDoes) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 1);
  plan.layers_per_stage = {3, 1};
  plan.micro_batch = 2;
  expect_same_training(training_of(tiny_gpt(), plan), tiny_gpt());
}

// Rows that no token has are trained as others are, as Megatron-LM's padded ones.
TEST(Vocabulary, OfUnequalPartsIsRoundedUp) {
  const std::string text = "- + * , ! # $ % & ' ( ) + - * ,";  // of bytes below 46, which both know
  for (Model model : {tiny_gpt(), tiny_llama()}) {
    for (const int pp : {1, 2}) {
      const Plan plan = plan_of(ScheduleName::one_f_one_b, 4, pp, 1);
      model.vocab = 48;
      Training one = training_of(model, alone(plan));
      model.vocab = 46;
      ASSERT_TRUE(runs(plan, model));
      Training split = training_of(model, plan);
      one.text = split.text = text;
      RankPool rank_pool(split, {10, {}});
      expect_same_training(rank_pool, one);
    }
  }
}

TEST(HeadNorms, AreSummedOverTensorRanks) {
  Model model = tiny_llama();
  model.qk_norm = true;
  expect_same_training(training_of(model, plan_of(ScheduleName::one_f_one_b, 2, 1, 1)), model);
}

TEST(Training, FollowsTheSameLossesDown) {
  Plan plan = plan_of(ScheduleName::interleaved, 2, 2, 2);
  plan.sequence_parallel = true;
  expect_same_losses(plan, tiny_llama());
}

TEST(Dropout, DrawsTheSameWhateverTheSplit) {
  Model model = tiny_gpt();
  model.dropout = true;
  for (const bool fused : {false, true}) {
    for (const Split& split : splits()) {
      if (split.schedule != ScheduleName::one_f_one_b) continue;
      SCOPED_TRACE(name_of(split));
      Plan plan = plan_of(split.schedule, split.tp, split.pp, split.dp);
      plan.sequence_parallel = split.sequence_parallel;
      plan.fused_attention = fused;
      expect_same_training(training_of(model, plan), model);
    }
  }
}

TEST(Dropout, DrawsTheSameOfBothChunksOfAContextParallelRank) {
  Model model = tiny_gpt();
  model.dropout = true;
  for (const int cp : {2, 4})
    for (const int tp : {1, 2})
      for (const bool sequence_parallel : {false, true}) {
        SCOPED_TRACE("cp " + std::to_string(cp) + " tp " + std::to_string(tp));
        Plan plan = plan_of(ScheduleName::one_f_one_b, tp, 1, 1);
        plan.cp = cp;
        plan.sequence_parallel = sequence_parallel && tp > 1;
        plan.micro_batch = 2;
        expect_same_training(training_of(model, plan), model);
      }
}

TEST(Dropout, DrawsTheSameWhenItIsRunAgain) {
  Model model = tiny_gpt();
  model.dropout = true;
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 1);
  plan.fused_attention = false;
  Plan again = plan;
  again.recompute = Recompute::full;
  RankPool kept(training_of(model, plan), {10, {}}), rerun(training_of(model, again), {10, {}});
  EXPECT_DOUBLE_EQ(kept.step().loss, rerun.step().loss);
  std::string where;
  EXPECT_EQ(largest_error(rerun.gradients(), kept.gradients(), where), 0) << where;
}

}  // namespace
}  // namespace rehearse
