// Norms, rotary positions, activations, sums and dropout: closed forms, and derivatives by differences.
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

struct NormCase {
  NormShape shape;
  bool own_weights = false;  // of every vector of a row
};

class Norms : public testing::TestWithParam<NormCase> {};

TEST_P(Norms, HaveUnitMomentsAndTheirBackwardIsTheDerivative) {
  const NormShape shape = GetParam().shape;
  const std::int64_t width = 24, vector = GetParam().own_weights ? width : width / shape.groups;
  Matrix x = random_matrix(5, width, 1), y(5, width), direction = random_matrix(5, width, 2);
  Matrix weight = random_matrix(1, vector, 3), bias = random_matrix(1, vector, 4);
  Matrix dx(5, width), dweight(1, vector), dbias(1, vector), ones(1, vector);
  ones.values.assign(ones.values.size(), 1);
  run_on_cpu({Norm{shape, x, ones, {}, y}});
  double squares = 0;
  const std::int64_t first = width / shape.groups;
  for (std::int64_t c = 0; c < first; ++c) squares += double{y.at(2, c)} * double{y.at(2, c)};
  EXPECT_NEAR(squares / static_cast<double>(first), 1, 1e-3);

  const Tensor used_bias = shape.centred ? Tensor(bias) : Tensor();
  const auto loss = [&] {
    run_on_cpu({Norm{shape, x, weight, used_bias, y}});
    return dot(y, direction);
  };
  run_on_cpu({NormInputGradient{shape, direction, x, weight, dx},
              NormWeightGradient{shape, direction, x, dweight, shape.centred ? Tensor(dbias) : Tensor()}},
             2);
  expect_gradient(x.values, dx.values, loss);
  expect_gradient(weight.values, dweight.values, loss);
  if (shape.centred) expect_gradient(bias.values, dbias.values, loss);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Norms,
                         testing::Values(NormCase{{true, 1, 1e-5F}}, NormCase{{false, 1, 1e-5F}},
                                         NormCase{{false, 3, 1e-5F}}, NormCase{{false, 3, 1e-5F}, true},
                                         NormCase{{true, 2, 1e-5F}, true}));

TEST(Norm, OfGroupsGivesEachColumnItsOwnWeight) {
  Matrix x = random_matrix(3, 8, 1), weight = random_matrix(1, 8, 2), y(3, 8);
  run_on_cpu({Norm{{false, 2, 0}, x, weight, {}, y}}, 2);
  for (std::int64_t c = 0; c < 8; ++c) {
    double squares = 0;
    for (std::int64_t i = c / 4 * 4; i < c / 4 * 4 + 4; ++i)
      squares += double{x.at(1, i)} * double{x.at(1, i)};
    EXPECT_NEAR(y.at(1, c), double{x.at(1, c)} / std::sqrt(squares / 4) * double{weight.at(0, c)}, 1e-5);
  }
}

TEST(NormWeightGradient, AddsToWhatWasThere) {
  Matrix x = random_matrix(3, 8, 1), dy = random_matrix(3, 8, 2), once(1, 8), twice(1, 8);
  const NormShape shape{true, 1, 1e-5F};
  run_on_cpu({NormWeightGradient{shape, dy, x, once, {}}});
  run_on_cpu({NormWeightGradient{shape, dy, x, twice, {}}, NormWeightGradient{shape, dy, x, twice, {}}});
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(twice.values[i], 2 * once.values[i], 1e-5);
}

TEST(Rotary, KeepsLengthsAndTurnsBack) {
  for (const bool position_major : {false, true}) {
    Matrix q = random_matrix(10, 16, 1), k = random_matrix(10, 8, 2), q2(10, 16), k2(10, 8), q3(10, 16),
           k3(10, 8);
    const Tokens tokens{2, 5, position_major, {}};
    run_on_cpu(
        {Rotary{tokens, 4, 2, 10000, false, q, k, q2, k2}, Rotary{tokens, 4, 2, 10000, true, q2, k2, q3, k3}},
        2);
    EXPECT_NEAR(dot(q, q), dot(q2, q2), 1e-4);
    expect_near(q3, q, 1e-5);
    expect_near(k3, k, 1e-5);
    const std::int64_t r = position_major ? 3 * 2 + 1 : 1 * 5 + 3;  // sequence 1, position 3
    const double angle = 3 * std::pow(10000.0, -0.5);               // second pair of four
    EXPECT_NEAR(q2.at(r, 1), q.at(r, 1) * std::cos(angle) - q.at(r, 3) * std::sin(angle), 1e-5);
  }
}

TEST(Rotary, TakesPositionsFromTheirTable) {
  std::vector<std::int32_t> places = {7, 0, 2};
  Matrix q = random_matrix(3, 4, 1), k = q, shuffled(3, 4), plain(8, 4), wide(8, 4), ignored(8, 4),
         also(3, 4);
  for (std::int64_t r = 0; r < 8; ++r) {
    for (std::int64_t c = 0; c < 4; ++c) wide.at(r, c) = q.at(0, c);
  }
  run_on_cpu({Rotary{{1, 3, false, vector_of(places, Type::int32)}, 1, 1, 10000, false, q, k, shuffled, also},
              Rotary{{1, 8, false, {}}, 1, 1, 10000, false, wide, wide, plain, ignored}});
  for (std::int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(shuffled.at(0, c), plain.at(7, c));
    EXPECT_EQ(shuffled.at(1, c), q.at(1, c));
  }
}

TEST(LatentRotary, PutsKeysTogetherAndItsBackwardIsTheDerivative) {
  const LatentHeads heads{{2, 3, true, {}}, 2, 3, 4, 5, 10000};
  Matrix query = random_matrix(6, 14, 1), shared = random_matrix(6, 4, 2), pairs = random_matrix(6, 16, 3);
  Matrix query_output(6, 14), key_output(6, 14), value_output(6, 10);
  const LatentRotary call{heads, query, shared, pairs, query_output, key_output, value_output};
  run_on_cpu({call}, 2);
  const std::int64_t r = 2 * 2 + 1;  // position 2
  Matrix turned(6, 4), ignored(6, 4);
  run_on_cpu({Rotary{heads.tokens, 1, 1, 10000, false, shared, shared, turned, ignored}});
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(key_output.at(r, h * 7 + c), pairs.at(r, h * 8 + c));
    for (std::int64_t c = 0; c < 4; ++c) EXPECT_EQ(key_output.at(r, h * 7 + 3 + c), turned.at(r, c));
    for (std::int64_t c = 0; c < 5; ++c) EXPECT_EQ(value_output.at(r, h * 5 + c), pairs.at(r, h * 8 + 3 + c));
    for (std::int64_t c = 0; c < 3; ++c) EXPECT_EQ(query_output.at(r, h * 7 + c), query.at(r, h * 7 + c));
  }

  Matrix of_query = random_matrix(6, 14, 4), of_key = random_matrix(6, 14, 5),
         of_value = random_matrix(6, 10, 6);
  Matrix query_gradient(6, 14), shared_gradient(6, 4), pairs_gradient(6, 16);
  const auto loss = [&] {
    run_on_cpu({call});
    return dot(query_output, of_query) + dot(key_output, of_key) + dot(value_output, of_value);
  };
  run_on_cpu({LatentRotaryBackward{heads, of_query, of_key, of_value, query_gradient, shared_gradient,
                                   pairs_gradient}},
             2);
  expect_gradient(query.values, query_gradient.values, loss);
  expect_gradient(shared.values, shared_gradient.values, loss);
  expect_gradient(pairs.values, pairs_gradient.values, loss);
}

class Activations : public testing::TestWithParam<ActivationKind> {};

TEST_P(Activations, FollowTheirFormulasAndTheirBackwardIsTheDerivative) {
  const bool gated = GetParam() == ActivationKind::swiglu;
  Matrix x = random_matrix(4, gated ? 26 : 13, 1), y(4, 13), direction = random_matrix(4, 13, 2);
  for (float& value : x.values) value *= 3;
  Matrix weights = random_matrix(1, 4, 3), dx(4, x.columns), dweights(1, 4);
  const auto loss = [&] {
    run_on_cpu({Activation{GetParam(), x, weights, y}});
    return dot(y, direction);
  };
  loss();
  const double a = x.at(1, 2);
  const double gelu = 0.5 * a * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
  const double plain = gated ? a / (1 + std::exp(-a)) * double{x.at(1, 15)}
                       : GetParam() == ActivationKind::squared_relu ? a * std::max(a, 0.0)
                                                                    : gelu;
  EXPECT_NEAR(y.at(1, 2), plain * double{weights.at(0, 1)}, 1e-5);
  run_on_cpu({ActivationBackward{GetParam(), direction, x, weights, dx, dweights}}, 2);
  expect_gradient(x.values, dx.values, loss);
  expect_gradient(weights.values, dweights.values, loss);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Activations,
                         testing::Values(ActivationKind::gelu, ActivationKind::swiglu,
                                         ActivationKind::squared_relu));

TEST(Add, SumsItsInputsAndTheBias) {
  Matrix a = random_matrix(3, 5, 1), b = random_matrix(3, 5, 2), c = random_matrix(3, 5, 3);
  Matrix bias = random_matrix(1, 5, 4), two(3, 5), three(3, 5);
  Add pair, triple;
  pair.inputs = {a, b};
  pair.bias = bias;
  pair.output = two;
  triple.inputs = {a, b, c};
  triple.output = three;
  run_on_cpu({pair, triple}, 2);
  EXPECT_FLOAT_EQ(two.at(1, 2), a.at(1, 2) + b.at(1, 2) + bias.at(0, 2));
  EXPECT_FLOAT_EQ(three.at(2, 4), a.at(2, 4) + b.at(2, 4) + c.at(2, 4));
}

TEST(Add, WritesToAnyOfItsInputs) {
  for (const std::size_t given : {1U, 2U, 3U, 4U}) {
    for (std::size_t written = 0; written < given; ++written) {
      std::vector<Matrix> in;
      for (std::uint32_t i = 0; i < given; ++i) in.push_back(random_matrix(3, 5, i));
      Matrix apart(3, 5);
      Add to_own, to_input;
      for (std::size_t i = 0; i < given; ++i) to_own.inputs[i] = to_input.inputs[i] = in[i];
      to_own.output = apart;
      to_input.output = in[written];
      run_on_cpu({to_own, to_input}, 2);
      EXPECT_EQ(in[written].values, apart.values) << "input " << written << " of " << given;
    }
  }
}

TEST(Quantize, WritesRowsAndColumnsAndRaisesTheMaximum) {
  Matrix x = random_matrix(3, 5, 1), rows(3, 5), columns(5, 3), scale(1, 1), maximum(1, 1), higher(1, 1);
  x.at(1, 4) = -7;
  scale.values = {2};
  higher.values = {9};
  run_on_cpu({Quantize{x, scale, maximum, rows, columns}, Quantize{x, {}, higher, {}, {}}}, 2);
  EXPECT_FLOAT_EQ(maximum.at(0, 0), 7);
  EXPECT_FLOAT_EQ(higher.at(0, 0), 9);
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t c = 0; c < 5; ++c) {
      EXPECT_FLOAT_EQ(rows.at(r, c), x.at(r, c) / 2);
      EXPECT_FLOAT_EQ(columns.at(c, r), x.at(r, c) / 2);
    }
  }
}

TEST(Dropout, DropsItsShareKeepsTheMeanAndMasksTheGradient) {
  Matrix x(100, 200), residual(100, 200), out(100, 200), gradient(100, 200);
  x.values.assign(x.values.size(), 1);
  std::vector<std::uint8_t> mask(x.values.size());
  Tensor of_mask(mask.data(), Type::uint8, 100, 200);
  run_on_cpu(
      {Dropout{x, {}, residual, out, of_mask, 0.25F, 7}, DropoutBackward{out, of_mask, gradient, 0.25F}}, 2);
  double kept = 0, mean = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    kept += mask[i];
    mean += double{out.values[i]};
    ASSERT_FLOAT_EQ(out.values[i], mask[i] != 0 ? 1 / 0.75F : 0.0F);
    ASSERT_FLOAT_EQ(gradient.values[i], out.values[i] * (mask[i] != 0 ? 1 / 0.75F : 0.0F));
  }
  const auto count = static_cast<double>(mask.size());
  EXPECT_NEAR(kept / count, 0.75, 4 * std::sqrt(0.25 * 0.75 / count));
  EXPECT_NEAR(mean / count, 1, 0.02);
}

TEST(Dropout, DrawsTheSameMaskWhateverTheThreads) {
  Matrix x = random_matrix(9, 17, 1), out(9, 17);
  std::vector<std::uint8_t> one(x.values.size()), three(x.values.size());
  run_on_cpu({Dropout{x, {}, {}, out, {one.data(), Type::uint8, 9, 17}, 0.5F, 3}}, 1);
  run_on_cpu({Dropout{x, {}, {}, out, {three.data(), Type::uint8, 9, 17}, 0.5F, 3}}, 3);
  EXPECT_EQ(one, three);
}

// A rank with columns 4 to 7 of every 12, and one with the rows from the third on.
TEST(Dropout, DrawsOfAPartWhatItDrawsOfTheWhole) {
  const Matrix x(6, 12);
  Matrix whole = x, out(6, 12);
  std::vector<std::uint8_t> mask(72), columns(24), rows(48);
  run_on_cpu({Dropout{whole, {}, {}, out, {mask.data(), Type::uint8, 6, 12}, 0.5F, 3}}, 1);
  Matrix part(6, 4), part_out(6, 4), tail(4, 12), tail_out(4, 12);
  Dropout of_columns{part, {}, {}, part_out, {columns.data(), Type::uint8, 6, 4}, 0.5F, 3};
  of_columns.draws = {4, 4, 12};
  Dropout of_rows{tail, {}, {}, tail_out, {rows.data(), Type::uint8, 4, 12}, 0.5F, 3};
  of_rows.draws = {24, 1, 1};
  run_on_cpu({of_columns, of_rows}, 1);
  for (std::size_t r = 0; r < 6; ++r)
    for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(columns[4 * r + c], mask[12 * r + 4 + c]);
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), mask.begin() + 24));
}

TEST(BiasGradient, AddsUpRows) {
  Matrix dy = random_matrix(6, 40, 1), sum(1, 40);
  run_on_cpu({BiasGradient{dy, sum}}, 3);
  double column = 0;
  for (std::int64_t r = 0; r < 6; ++r) column += double{dy.at(r, 33)};
  EXPECT_NEAR(sum.at(0, 33), column, 1e-6);
}

TEST(Randomise, FillsItsRangeEvenly) {
  Matrix x(200, 100);
  run_on_cpu({Randomise{x, 2, 0.5F, 11}}, 2);
  double mean = 0, square = 0;
  for (const float value : x.values) {
    ASSERT_GE(value, 1.5F);
    ASSERT_LE(value, 2.5F);
    mean += double{value} / 20000;
    square += (double{value} - 2) * (double{value} - 2) / 20000;
  }
  EXPECT_NEAR(mean, 2, 0.01);
  EXPECT_NEAR(square, 1.0 / 12, 0.002);  // variance of a uniform number of unit width
}

}  // namespace
}  // namespace rehearse::kernels
