// Fused attention against scores in double, over masks, grouped heads, layouts and split keys.
#include <numeric>

#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

struct Case {
  std::int64_t sequences, length, keys, heads, kv_heads, head_dim, v_head_dim, window;
  bool causal, position_major;
  const char* name;
};

AttentionShape shape_of(const Case& c) {
  AttentionShape shape;
  shape.queries = {c.sequences, c.length, c.position_major, {}};
  shape.keys = {c.sequences, c.keys, c.position_major, {}};
  shape.heads = c.heads;
  shape.kv_heads = c.kv_heads;
  shape.head_dim = c.head_dim;
  shape.v_head_dim = c.v_head_dim;
  shape.causal = c.causal;
  shape.window = c.window;
  shape.scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
  return shape;
}

// Every operand of one case, filled with random numbers.
struct Operands {
  explicit Operands(const Case& c)
      : query(random_matrix(c.sequences * c.length, c.heads * c.head_dim, 1)),
        key(random_matrix(c.sequences * c.keys, c.kv_heads * c.head_dim, 2)),
        value(random_matrix(c.sequences * c.keys, c.kv_heads * c.v_head_dim, 3)),
        output(query.rows, c.heads * c.v_head_dim),
        log_sum_exp(query.rows, c.heads) {}
  AttentionForward forward(const AttentionShape& shape) {
    return {shape, query, key, value, output, log_sum_exp};
  }
  Matrix query, key, value, output, log_sum_exp;
};

std::int64_t row_of(const Tokens& tokens, std::int64_t sequence, std::int64_t place) {
  return tokens.position_major ? place * tokens.sequences + sequence : sequence * tokens.length + place;
}

bool sees(const AttentionShape& shape, std::int64_t query, std::int64_t key) {
  return (!shape.causal || key <= query) && (shape.window == 0 || key > query - shape.window);
}

// One element of the output, and the logarithm of the sum of exponentials.
std::pair<double, double> expected(Operands& o, const AttentionShape& s, std::int64_t sequence,
                                   std::int64_t head, std::int64_t place, std::int64_t column) {
  const std::int64_t shared = head / (s.heads / s.kv_heads);
  double sum = 0, weighted = 0;
  for (std::int64_t key = 0; key < s.keys.length; ++key) {
    if (!sees(s, place, key)) continue;
    double score = 0;
    const std::int64_t q = row_of(s.queries, sequence, place), k = row_of(s.keys, sequence, key);
    for (std::int64_t d = 0; d < s.head_dim; ++d) {
      score += double{o.query.at(q, head * s.head_dim + d)} * double{o.key.at(k, shared * s.head_dim + d)};
    }
    const double e = std::exp(double{s.scale} * score);
    sum += e;
    weighted += e * double{o.value.at(k, shared * s.v_head_dim + column)};
  }
  return {weighted / sum, std::log(sum)};
}

const Case kCases[] = {
    {2, 5, 5, 2, 2, 4, 4, 0, true, false, "Causal"},
    {1, 150, 150, 2, 1, 16, 16, 0, true, false, "CausalOverSeveralTiles"},
    {2, 70, 130, 4, 2, 8, 8, 0, false, true, "FullWithMoreKeysThanQueries"},
    {1, 140, 140, 2, 2, 8, 8, 17, true, true, "SlidingWindow"},
    {2, 66, 66, 3, 1, 12, 5, 0, true, true, "NarrowerValues"},
};

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, EqualsScoresInDouble) {
  const Case& c = GetParam();
  const AttentionShape shape = shape_of(c);
  Operands o(c);
  run_on_cpu({o.forward(shape)}, 2);
  for (std::int64_t sequence = 0; sequence < c.sequences; ++sequence) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      for (std::int64_t place = 0; place < c.length; place += 7) {
        const std::int64_t r = row_of(shape.queries, sequence, place), column = place % c.v_head_dim;
        const auto [value, log_sum] = expected(o, shape, sequence, head, place, column);
        ASSERT_NEAR(o.output.at(r, head * c.v_head_dim + column), value, 1e-5);
        ASSERT_NEAR(o.log_sum_exp.at(r, head), log_sum, 1e-5);
      }
    }
  }
}

TEST_P(Attention, BackwardIsTheDerivative) {
  const Case& c = GetParam();
  const AttentionShape shape = shape_of(c);
  Operands o(c);
  Matrix direction = random_matrix(o.output.rows, o.output.columns, 4);
  Matrix dq(o.query.rows, o.query.columns), dk(o.key.rows, o.key.columns), dv(o.value.rows, o.value.columns);
  const auto loss = [&] {
    run_on_cpu({o.forward(shape)});
    return dot(o.output, direction);
  };
  loss();
  run_on_cpu(
      {AttentionBackward{shape, direction, o.query, o.key, o.value, o.output, o.log_sum_exp, dq, dk, dv}}, 2);
  expect_gradient(o.query.values, dq.values, loss);
  expect_gradient(o.key.values, dk.values, loss);
  expect_gradient(o.value.values, dv.values, loss);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention, testing::ValuesIn(kCases),
                         [](const auto& attention) { return attention.param.name; });

// Ring attention: each rank's keys give a part, and the parts join to the whole.
TEST(AttentionMerge, OfSplitKeysIsAttentionOverAll) {
  const Case c{1, 90, 90, 2, 2, 8, 8, 0, true, false, ""};
  Operands whole(c), part(c);
  AttentionShape shape = shape_of(c);
  run_on_cpu({whole.forward(shape)});
  std::vector<std::int32_t> positions(90);
  std::iota(positions.begin(), positions.end(), 0);
  Matrix joined(90, 16), joined_log(90, 2);
  for (float& value : joined_log.values) value = -INFINITY;
  shape.keys.length = 30;
  for (std::int64_t step = 0; step < 3; ++step) {
    AttentionForward call = part.forward(shape);
    call.shape.keys.positions = Tensor(positions.data() + step * 30, Type::int32, 1, 30);
    call.key.data = part.key.values.data() + step * 30 * 16;
    call.value.data = part.value.values.data() + step * 30 * 16;
    run_on_cpu({call, AttentionMerge{2, part.output, part.log_sum_exp, joined, joined_log}});
  }
  expect_near(joined, whole.output, 1e-5);
  expect_near(joined_log, whole.log_sum_exp, 1e-5);
}

TEST(AttentionForward, OfAQueryThatSeesNoKeyIsZero) {
  const Case c{1, 4, 4, 1, 1, 4, 4, 0, true, false, ""};
  Operands o(c);
  std::vector<std::int32_t> later = {2, 3, 4, 5};
  AttentionForward call = o.forward(shape_of(c));
  call.shape.keys.positions = vector_of(later, Type::int32);
  run_on_cpu({call});
  EXPECT_EQ(o.output.at(0, 0), 0);
  EXPECT_EQ(o.log_sum_exp.at(1, 0), -INFINITY);
  EXPECT_NEAR(o.output.at(2, 1), o.value.at(0, 1), 1e-6);
}

TEST(Softmax, IsCausalByQueryAndItsBackwardTheDerivative) {
  Matrix scores = random_matrix(12, 3, 1), out(12, 3), direction = random_matrix(12, 3, 2), gradient(12, 3);
  const Softmax forward{scores, out, 0.7F, true, 6, 2};  // queries 0 0 1 1 2 2, twice
  const auto loss = [&] {
    run_on_cpu({forward});
    return dot(out, direction);
  };
  loss();
  EXPECT_EQ(out.at(1, 0), 1);
  EXPECT_EQ(out.at(8, 2), 0);
  EXPECT_NEAR(out.at(5, 0) + out.at(5, 1) + out.at(5, 2), 1, 1e-6);
  run_on_cpu({SoftmaxBackward{direction, out, gradient, 0.7F}});
  expect_gradient(scores.values, gradient.values, loss);
}

}  // namespace
}  // namespace rehearse::kernels
