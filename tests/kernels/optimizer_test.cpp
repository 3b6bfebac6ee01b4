// The optimizer step against the formula in double.
#include "kernels/short_float.h"
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

TEST(Adam, FollowsItsFormulaOverSeveralSteps) {
  Matrix gradient = random_matrix(1, 3000, 1), mean(1, 3000), square(1, 3000),
         master = random_matrix(1, 3000, 2);
  Matrix weight(1, 3000);
  Adam call{gradient, mean, square, master, weight, {}, 1e-2F, 0.9F, 0.95F, 1e-8F, 0.1F, 1};
  double m = 0, v = 0, w = master.at(0, 2500);
  const double g = gradient.at(0, 2500);
  for (std::int64_t step = 1; step <= 5; ++step) {
    call.step = step;
    run_on_cpu({call}, 2);
    m = 0.9 * m + 0.1 * g;
    v = 0.95 * v + 0.05 * g * g;
    const double direction =
        m / (1 - std::pow(0.9, step)) / (std::sqrt(v / (1 - std::pow(0.95, step))) + 1e-8);
    w -= 1e-2 * (direction + 0.1 * w);
    ASSERT_NEAR(master.at(0, 2500), w, 1e-6);
    ASSERT_EQ(weight.at(0, 2500), master.at(0, 2500));
  }
}

TEST(Adam, FirstStepMovesEveryWeightByTheRate) {
  Matrix gradient = random_matrix(1, 100, 1), mean(1, 100), square(1, 100), master(1, 100);
  run_on_cpu({Adam{gradient, mean, square, master, {}, {}, 0.5F, 0.9F, 0.999F, 0, 0, 1}});
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_NEAR(master.values[i], gradient.values[i] > 0 ? -0.5 : 0.5, 1e-4);
}

TEST(ClipScale, BringsTheGlobalNormToTheLimit) {
  Matrix a = random_matrix(3, 40, 1), b = random_matrix(5, 7, 2), sum(1, 1), scale(1, 1);
  run_on_cpu({SquareSum{a, sum}, SquareSum{b, sum}, ClipScale{sum, scale, 0.5F}});
  const double norm = std::sqrt(dot(a, a) + dot(b, b));
  EXPECT_NEAR(scale.at(0, 0) * norm, 0.5, 1e-5);
  run_on_cpu({ClipScale{sum, scale, 100}});
  EXPECT_EQ(scale.at(0, 0), 1);
}

TEST(Adam, MultipliesGradientsByTheClipScale) {
  Matrix gradient = random_matrix(1, 10, 1), mean(1, 10), square(1, 10), master(1, 10), scale(1, 1);
  scale.values = {0.25F};
  run_on_cpu({Adam{gradient, mean, square, master, {}, scale, 1, 0, 0, 0, 0, 1}});
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(mean.values[i], 0.25F * gradient.values[i], 1e-7);
}

TEST(ClipScale, DividesByTheLossScaleBeforeItClips) {
  constexpr float kScale = 4096;
  Matrix gradient = random_matrix(3, 40, 1), scaled = gradient, sum(1, 1), scale(1, 1);
  for (float& value : scaled.values) value *= kScale;
  const double norm = std::sqrt(dot(gradient, gradient));
  run_on_cpu({SquareSum{scaled, sum}, ClipScale{sum, scale, 0.5F, kScale}});
  EXPECT_NEAR(scale.at(0, 0) * kScale * norm, 0.5, 1e-5);
  for (const float limit : {100.0F, INFINITY}) {
    run_on_cpu({ClipScale{sum, scale, limit, kScale}});
    EXPECT_EQ(scale.at(0, 0), 1 / kScale);
  }
}

// Any element of a scaled loss that is infinite or no number; without a scale it is left to be seen.
TEST(ClipScale, IsNoNumberWhereAGradientOverflowed) {
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    Matrix gradient = random_matrix(1, 3000, 1), sum(1, 1), scale(1, 1);
    gradient.values[2999] = value;
    run_on_cpu({SquareSum{gradient, sum}, ClipScale{sum, scale, 1, 8}});
    EXPECT_TRUE(std::isnan(scale.at(0, 0)));
    run_on_cpu({ClipScale{sum, scale, 1}});
    EXPECT_FALSE(std::isnan(scale.at(0, 0)));
  }
}

TEST(Adam, SkipsAStepWhoseScaleIsNoNumber) {
  Matrix gradient(1, 3000), mean = random_matrix(1, 3000, 1), square = random_matrix(1, 3000, 2),
                            master = random_matrix(1, 3000, 3), scale(1, 1);
  gradient.values.assign(3000, INFINITY);
  scale.values = {NAN};
  const Matrix old_mean = mean, old_square = square, old_master = master;
  std::vector<Fp16> weight(3000);
  run_on_cpu({Adam{gradient, mean, square, master, vector_of(weight, Type::fp16), scale}}, 2);
  EXPECT_EQ(mean.values, old_mean.values);
  EXPECT_EQ(square.values, old_square.values);
  EXPECT_EQ(master.values, old_master.values);
  for (std::size_t i = 0; i < weight.size(); ++i)
    ASSERT_EQ(weight[i].bits, Fp16(master.values[i]).bits) << "element " << i;
}

}  // namespace
}  // namespace rehearse::kernels
