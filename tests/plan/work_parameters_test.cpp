#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "work_case.h"

namespace rehearse {
namespace {

double on_one_rank_of_each_stage(const Case& c) {
  const Work work = make_work(c.model, c.plan);
  double sum = 0;
  for (int stage = 0; stage < c.plan.stages(); ++stage) sum += work.parameters(stage);
  return sum;
}

// Parameters that every tensor-parallel rank has completely.
double replicated(const Model& m) {
  const double norm = double(m.hidden) * (m.norm == Norm::layer ? 2 : 1);
  const double biases = double(m.hidden) * (int(m.attention_out_bias) + int(m.mlp_bias));
  const double qk_norms = m.qk_norm ? 2 * double(m.head_dim) : 0;
  const double positions = m.positions == Positions::learned ? double(m.max_positions * m.hidden) : 0;
  return double(m.layers) * (2 * norm + biases + qk_norms) + norm + positions;
}

// Narayanan et al. 2021, equation 2, multiplied out, and the final norm, which it leaves out.
RC_GTEST_PROP(Parameters, OfATiedGptOnOneGpuAreEquation2, ()) {
  Case c = any_gpt();
  c.plan.tp = c.plan.pp = 1;
  const double l = double(c.model.layers), h = double(c.model.hidden);
  const double V = double(c.model.vocab), s = double(c.plan.seq);
  RC_ASSERT(on_one_rank_of_each_stage(c) == 12 * l * h * h + 13 * l * h + (V + s) * h + 2 * h);
}

RC_GTEST_PROP(Parameters, OnOneGpuAreThoseOfTheModel, ()) {
  Case c = any_case();
  c.plan.tp = c.plan.pp = 1;
  RC_ASSERT(on_one_rank_of_each_stage(c) == double(count_parameters(c.model).total));
}

// Totals of the published weights.
TEST(Parameters, OfLlamasAreThePublishedTotals) {
  const auto total = [](const Model& model) { return on_one_rank_of_each_stage({model, {}}); };
  EXPECT_EQ(total(llama(32, 4096, 32, 32, 11008, 32000)), 6'738'415'616);       // Llama 2 7B
  EXPECT_EQ(total(llama(80, 8192, 64, 8, 28672, 32000)), 68'976'648'192);       // Llama 2 70B
  EXPECT_EQ(total(llama(32, 4096, 32, 8, 14336, 128256)), 8'030'261'248);       // Llama 3 8B
  EXPECT_EQ(total(llama(126, 16384, 128, 8, 53248, 128256)), 405'853'388'800);  // Llama 3.1 405B
}

RC_GTEST_PROP(Parameters, OfAllRanksAreTheModelsAndCopiesOfWhatIsReplicated, ()) {
  Case c = any_case();
  c.model.tied_embeddings = false;
  if (c.model.kv_heads < c.plan.tp) c.model.kv_heads = c.plan.tp;
  const double t = c.plan.tp;
  const double ranks = t * on_one_rank_of_each_stage(c);
  c.plan.tp = c.plan.pp = 1;
  RC_ASSERT(ranks == on_one_rank_of_each_stage(c) + (t - 1) * replicated(c.model));
}

TEST(Parameters, OfKeyAndValueHeadsAreReplicatedWhenTheyAreFewerThanTp) {
  Case c{llama(1, 64, 8, 2, 128, 256), {}};
  c.plan.seq = 32;
  c.plan.tp = 2;
  const double one_head_each = on_one_rank_of_each_stage(c);
  c.plan.tp = 8;
  const double h = 64, d = 8;
  const double shared_by_two = (2 * h * h + 3 * 128 * h + 2 * 256 * h) / 2;
  EXPECT_EQ(one_head_each, shared_by_two + 2 * d * h + 3 * h);
  EXPECT_EQ(on_one_rank_of_each_stage(c), shared_by_two / 4 + 2 * d * h + 3 * h);
}

TEST(Parameters, OfATiedHeadCountOnlyAwayFromTheEmbedding) {
  Case c{gpt(4, 64, 4, 128, 32), {}};
  c.plan.seq = 32;
  const double together = on_one_rank_of_each_stage(c);
  c.plan.pp = 2;
  EXPECT_EQ(on_one_rank_of_each_stage(c), together + 128 * 64);
}

TEST(Parameters, OfAVocabularyThatTpDoesNotDivideAreRoundedUp) {
  Case c{llama(1, 64, 4, 4, 128, 257), {}};
  c.plan.tp = 2;
  EXPECT_EQ(block_called(make_work(c.model, c.plan), "embedding").parameters(), 129.0 * 64);
}

}  // namespace
}  // namespace rehearse
