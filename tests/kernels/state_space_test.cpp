// The scan compared with its matrix form (Dao and Gu 2024, section 5), the convolution with its sum, both in
// double. Derivatives are compared with differences, and sequences must not see each other.
#include <numeric>

#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

std::int64_t row_of_place(const Tokens& tokens, std::int64_t sequence, std::int64_t place) {
  return tokens.position_major ? place * tokens.sequences + sequence : sequence * tokens.length + place;
}

double silu_in_double(double x) {
  return x / (1 + std::exp(-x));
}

struct ScanCase {
  ScanShape shape;
  const char* name;
};

ScanShape scan_shape(const Tokens& tokens, std::int64_t heads, std::int64_t groups, std::int64_t head_dim,
                     std::int64_t state) {
  return {tokens, heads, groups, head_dim, state};
}

const ScanCase kScans[] = {
    {scan_shape({1, 1, false, {}}, 2, 1, 3, 4), "OneToken"},
    {scan_shape({2, 9, false, {}}, 4, 2, 5, 8), "TwoSequencesTwoGroups"},
    {scan_shape({2, 7, true, {}}, 3, 1, 4, 3), "PositionMajorOneGroup"},
    {scan_shape({3, 1, true, {}}, 2, 2, 2, 5), "SequencesOfOneToken"},
    {scan_shape({1, 150, false, {}}, 2, 1, 3, 6), "OverSeveralChunks"},
};

// A scan's operands and their gradients, which `direction` asks for.
struct ScanOperands {
  explicit ScanOperands(const ScanShape& its)
      : shape(its),
        rows(its.tokens.rows()),
        gate(random_matrix(rows, its.inner(), 1)),
        convolved(random_matrix(rows, its.inner() + 2 * its.groups * its.state, 2)),
        step(random_matrix(rows, its.heads, 3)),
        step_bias(random_matrix(1, its.heads, 4)),
        decay_log(random_matrix(1, its.heads, 5)),
        skip(random_matrix(1, its.heads, 6)),
        ungated(rows, its.inner()),
        output(rows, its.inner()),
        direction(random_matrix(rows, its.inner(), 7)) {
    for (float& value : decay_log.values) value -= 3;  // some thirty tokens are remembered
  }

  Scan forward() { return {shape, gate, convolved, step, step_bias, decay_log, skip, ungated, output}; }
  double loss() {
    run_on_cpu({forward()}, 2);
    return dot(output, direction);
  }
  // Gradients of weights are added to ones.
  void backward() {
    for (Matrix* sum : {&dstep_bias, &ddecay_log, &dskip}) sum->values.assign(sum->values.size(), 1);
    run_on_cpu(
        {forward(),
         ScanInputGradient{shape, direction, gate, convolved, step, step_bias, decay_log, skip, ungated,
                           dgate, dconvolved, dstep, ddecay},
         ScanWeightGradient{shape, direction, gate, convolved, dstep, ddecay, dstep_bias, ddecay_log, dskip}},
        2);
    for (Matrix* sum : {&dstep_bias, &ddecay_log, &dskip}) {
      for (float& value : sum->values) value -= 1;
    }
  }

  ScanShape shape;
  std::int64_t rows;
  Matrix gate, convolved, step, step_bias, decay_log, skip, ungated, output, direction;
  // Outputs that are overwritten, and outputs that are accumulated.
  Matrix dgate = gate, dconvolved = convolved, dstep = step, ddecay = step;
  Matrix dstep_bias = skip, ddecay_log = skip, dskip = skip;
};

// y = (L o C B^T) (delta x) + skip x of one head of one sequence. L[t, s] is the product of the decays of s +
// 1 to t; by place and column.
std::vector<std::vector<double>> by_matrix(ScanOperands& o, std::int64_t sequence, std::int64_t head) {
  const ScanShape& s = o.shape;
  const auto length = static_cast<std::size_t>(s.tokens.length);
  const std::int64_t group = head / (s.heads / s.groups), b = s.inner() + group * s.state,
                     c = b + s.groups * s.state;
  const auto convolved = [&](std::size_t place, std::int64_t column) {
    return double{o.convolved.at(row_of_place(s.tokens, sequence, static_cast<std::int64_t>(place)), column)};
  };
  std::vector<double> delta(length);
  for (std::size_t t = 0; t < length; ++t) {
    const std::int64_t r = row_of_place(s.tokens, sequence, static_cast<std::int64_t>(t));
    delta[t] = std::log1p(std::exp(double{o.step.at(r, head)} + double{o.step_bias.at(0, head)}));
  }
  const double rate = -std::exp(double{o.decay_log.at(0, head)}), skip = double{o.skip.at(0, head)};
  std::vector y(length, std::vector<double>(static_cast<std::size_t>(s.head_dim)));
  for (std::size_t t = 0; t < length; ++t) {
    for (std::size_t from = 0; from <= t; ++from) {
      double product = 0;
      for (std::int64_t n = 0; n < s.state; ++n) product += convolved(t, c + n) * convolved(from, b + n);
      const auto after = delta.begin() + static_cast<std::ptrdiff_t>(from) + 1;
      const auto end = delta.begin() + static_cast<std::ptrdiff_t>(t) + 1;
      const double mask = std::exp(rate * std::accumulate(after, end, 0.0));
      for (std::int64_t p = 0; p < s.head_dim; ++p)
        y[t][static_cast<std::size_t>(p)] +=
            mask * product * delta[from] * convolved(from, head * s.head_dim + p);
    }
    for (std::int64_t p = 0; p < s.head_dim; ++p)
      y[t][static_cast<std::size_t>(p)] += skip * convolved(t, head * s.head_dim + p);
  }
  return y;
}

class Scans : public testing::TestWithParam<ScanCase> {};

TEST_P(Scans, EqualTheirMatrix) {
  ScanOperands o(GetParam().shape);
  const ScanShape& s = o.shape;
  run_on_cpu({o.forward()}, 3);
  for (std::int64_t sequence = 0; sequence < s.tokens.sequences; ++sequence) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const auto y = by_matrix(o, sequence, head);
      for (std::int64_t place = 0; place < s.tokens.length; ++place) {
        const std::int64_t r = row_of_place(s.tokens, sequence, place);
        for (std::int64_t p = 0; p < s.head_dim; ++p) {
          const double expected = y[static_cast<std::size_t>(place)][static_cast<std::size_t>(p)];
          const std::int64_t column = head * s.head_dim + p;
          const double gate = silu_in_double(double{o.gate.at(r, column)});
          ASSERT_NEAR(o.ungated.at(r, column), expected, 1e-5) << "place " << place << " head " << head;
          ASSERT_NEAR(o.output.at(r, column), expected * gate, 1e-5) << "place " << place << " head " << head;
        }
      }
    }
  }
}

TEST_P(Scans, HaveABackwardThatIsTheDerivative) {
  ScanOperands o(GetParam().shape);
  o.backward();
  const auto loss = [&] { return o.loss(); };
  expect_gradient(o.gate.values, o.dgate.values, loss);
  expect_gradient(o.convolved.values, o.dconvolved.values, loss);
  expect_gradient(o.step.values, o.dstep.values, loss);
  expect_gradient(o.step_bias.values, o.dstep_bias.values, loss);
  expect_gradient(o.decay_log.values, o.ddecay_log.values, loss);
  expect_gradient(o.skip.values, o.dskip.values, loss);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Scans, testing::ValuesIn(kScans),
                         [](const auto& given) { return given.param.name; });

// With a strong step, the argument of softplus()'s logarithm may overflow.
TEST(Scan, ForgetsAtOnceWhereTheStepIsLarge) {
  ScanOperands o(scan_shape({1, 3, false, {}}, 1, 1, 1, 1));
  o.step.values.assign(3, 100);
  o.decay_log.values = {0};
  run_on_cpu({o.forward()});
  const double delta = 100 + double{o.step_bias.at(0, 0)};
  const double x = o.convolved.at(2, 0), b = o.convolved.at(2, 1), c = o.convolved.at(2, 2);
  EXPECT_NEAR(o.ungated.at(2, 0), delta * x * b * c + o.skip.at(0, 0) * x, 1e-4);
}

struct ConvolutionCase {
  Tokens tokens;
  std::int64_t channels, width;
  bool biased;
  const char* name;
};

const ConvolutionCase kConvolutions[] = {
    {{1, 1, false, {}}, 3, 4, true, "OneToken"},
    {{2, 9, false, {}}, 37, 4, true, "TwoSequences"},
    {{2, 6, true, {}}, 5, 3, false, "PositionMajorWithoutBias"},
    {{3, 2, false, {}}, 4, 1, true, "WithoutHistory"},
};

struct ConvolutionOperands {
  explicit ConvolutionOperands(const ConvolutionCase& its)
      : tokens(its.tokens),
        rows(tokens.rows()),
        input(random_matrix(rows, its.channels, 1)),
        weight(random_matrix(its.channels, its.width, 2)),
        bias(random_matrix(1, its.channels, 3)),
        output(rows, its.channels),
        direction(random_matrix(rows, its.channels, 4)),
        used_bias(its.biased ? Tensor(bias) : Tensor()) {}

  Convolution forward() { return {tokens, input, weight, used_bias, output}; }
  double loss() {
    run_on_cpu({forward()}, 2);
    return dot(output, direction);
  }
  void backward() {
    for (Matrix* sum : {&dweight, &dbias}) sum->values.assign(sum->values.size(), 1);
    run_on_cpu({ConvolutionInputGradient{tokens, direction, input, weight, used_bias, dinput},
                ConvolutionWeightGradient{tokens, direction, input, weight, used_bias, dweight,
                                          used_bias.given() ? Tensor(dbias) : Tensor()}},
               2);
    for (Matrix* sum : {&dweight, &dbias}) {
      for (float& value : sum->values) value -= 1;
    }
  }

  Tokens tokens;
  std::int64_t rows;
  Matrix input, weight, bias, output, direction;
  Tensor used_bias;
  Matrix dinput = direction, dweight = weight, dbias = bias;
};

class Convolutions : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(Convolutions, EqualTheirSum) {
  ConvolutionOperands o(GetParam());
  run_on_cpu({o.forward()}, 3);
  for (std::int64_t sequence = 0; sequence < o.tokens.sequences; ++sequence) {
    for (std::int64_t place = 0; place < o.tokens.length; ++place) {
      for (std::int64_t c = 0; c < o.input.columns; ++c) {
        double sum = o.used_bias.given() ? double{o.bias.at(0, c)} : 0;
        for (std::int64_t i = 0; i < o.weight.columns; ++i) {
          const std::int64_t from = place - (o.weight.columns - 1) + i;
          if (from < 0) continue;
          sum += double{o.weight.at(c, i)} * double{o.input.at(row_of_place(o.tokens, sequence, from), c)};
        }
        ASSERT_NEAR(o.output.at(row_of_place(o.tokens, sequence, place), c), silu_in_double(sum), 1e-6)
            << "place " << place << " channel " << c;
      }
    }
  }
}

TEST_P(Convolutions, HaveABackwardThatIsTheDerivative) {
  ConvolutionOperands o(GetParam());
  o.backward();
  const auto loss = [&] { return o.loss(); };
  expect_gradient(o.input.values, o.dinput.values, loss);
  expect_gradient(o.weight.values, o.dweight.values, loss);
  if (o.used_bias.given()) expect_gradient(o.bias.values, o.dbias.values, loss);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolutions, testing::ValuesIn(kConvolutions),
                         [](const auto& given) { return given.param.name; });

// The rows of one sequence, one after the other.
std::vector<float> of_sequence(Matrix& matrix, const Tokens& tokens, std::int64_t sequence) {
  std::vector<float> values;
  for (std::int64_t place = 0; place < tokens.length; ++place) {
    for (std::int64_t c = 0; c < matrix.columns; ++c)
      values.push_back(matrix.at(row_of_place(tokens, sequence, place), c));
  }
  return values;
}

void turn_sequence(Matrix& matrix, const Tokens& tokens, std::int64_t sequence) {
  for (std::int64_t place = 0; place < tokens.length; ++place) {
    for (std::int64_t c = 0; c < matrix.columns; ++c)
      matrix.at(row_of_place(tokens, sequence, place), c) *= -0.5F;
  }
}

// Results of sequence `kept` stay when sequence `turned` changes.
template <typename Operands>
void expect_apart(Operands& o, const std::vector<Matrix*>& inputs, const std::vector<Matrix*>& results,
                  std::int64_t kept, std::int64_t turned) {
  const Tokens tokens = o.tokens;
  const auto run = [&] {
    o.loss();
    o.backward();
    std::vector<std::vector<float>> found;
    for (Matrix* result : results) {
      found.push_back(of_sequence(*result, tokens, kept));
      found.push_back(of_sequence(*result, tokens, turned));
    }
    return found;
  };
  const auto before = run();
  for (Matrix* input : inputs) turn_sequence(*input, tokens, turned);
  const auto after = run();
  for (std::size_t i = 0; i < before.size(); i += 2) {
    EXPECT_EQ(before[i], after[i]) << "result " << i / 2;
    EXPECT_NE(before[i + 1], after[i + 1]) << "result " << i / 2;
  }
}

struct ScanOfTokens : ScanOperands {
  explicit ScanOfTokens(const Tokens& given) : ScanOperands(scan_shape(given, 2, 1, 3, 4)), tokens(given) {}
  Tokens tokens;
};

TEST(StateSpace, DoesNotLetSequencesSeeEachOther) {
  for (const bool position_major : {false, true}) {
    for (const std::int64_t kept : {0, 1}) {
      SCOPED_TRACE(testing::Message() << "position major " << position_major << " kept " << kept);
      const Tokens tokens{2, 5, position_major, {}};
      ScanOfTokens scan(tokens);
      expect_apart(scan, {&scan.gate, &scan.convolved, &scan.step, &scan.direction},
                   {&scan.output, &scan.dgate, &scan.dconvolved, &scan.dstep, &scan.ddecay}, kept, 1 - kept);
      ConvolutionOperands convolution({tokens, 3, 4, true, ""});
      expect_apart(convolution, {&convolution.input, &convolution.direction},
                   {&convolution.output, &convolution.dinput}, kept, 1 - kept);
    }
  }
}

TEST(Scan, RefusesColumnsThatAreNotXAndBAndC) {
  ScanOperands o(scan_shape({1, 2, false, {}}, 2, 1, 3, 4));
  Scan call = o.forward();
  call.shape.state = 5;
  EXPECT_THROW(run_on_cpu({call}), DeviceError);
  call = o.forward();
  call.shape.groups = 4;  // in as many columns
  call.shape.state = 1;
  EXPECT_THROW(run_on_cpu({call}), DeviceError);
}

}  // namespace
}  // namespace rehearse::kernels
