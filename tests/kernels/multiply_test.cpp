// GEMMs compared with sums in double.
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

double expected(Matrix& a, Matrix& b, const Multiply& call, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t l = 0; l < call.k(); ++l) {
    sum += double{call.transpose_a ? a.at(l, i) : a.at(i, l)} *
           double{call.transpose_b ? b.at(j, l) : b.at(l, j)};
  }
  return sum;
}

TEST(Multiply, EqualsSumsInDoubleForAllLayoutsAndThreads) {
  std::mt19937 bits(1);
  for (int trial = 0; trial < 48; ++trial) {
    const auto side = [&] { return std::uniform_int_distribution<std::int64_t>(1, 70)(bits); };
    const std::int64_t m = side(), n = side(), k = side();
    Multiply call;
    call.transpose_a = trial % 2 == 1;
    call.transpose_b = trial / 2 % 2 == 1;
    call.accumulate = trial / 4 % 2 == 1;
    Matrix a = call.transpose_a ? random_matrix(k, m, 2) : random_matrix(m, k, 2);
    Matrix b = call.transpose_b ? random_matrix(n, k, 3) : random_matrix(k, n, 3);
    Matrix c = random_matrix(m, n, 4), bias = random_matrix(1, n, 5);
    const Matrix before = c;
    call.a = a;
    call.b = b;
    call.c = c;
    if (trial / 8 % 2 == 1) call.bias = bias;
    run_on_cpu({call}, 1 + trial % 3);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = expected(a, b, call, i, j) + (call.bias.given() ? double{bias.at(0, j)} : 0.0);
        if (call.accumulate) sum += double{before.values[static_cast<std::size_t>(i * n + j)]};
        ASSERT_NEAR(c.at(i, j), sum, 1e-4) << m << "x" << n << "x" << k << " trial " << trial;
      }
    }
  }
}

TEST(Multiply, OfABatchEqualsItsProductsOneByOne) {
  Matrix a = random_matrix(6, 4, 1), b = random_matrix(6, 5, 2), c(9, 5), one(3, 5);
  Multiply call;
  call.a = Tensor{a.values.data(), Type::fp32, 2, 3};  // transposed: 3 x 2
  call.b = Tensor{b.values.data(), Type::fp32, 2, 5};
  call.c = Tensor{c.values.data(), Type::fp32, 3, 5};
  call.transpose_a = true;
  call.batch = 3;
  call.step_a = 6;
  call.step_b = 10;
  call.step_c = 15;
  for (const int threads : {1, 2}) {
    run_on_cpu({call}, threads);
    for (std::int64_t product = 0; product < 3; ++product) {
      Multiply single = call;
      single.batch = 1;
      single.a.data = a.values.data() + product * 6;
      single.b.data = b.values.data() + product * 10;
      single.c = one;
      run_on_cpu({single});
      for (std::int64_t i = 0; i < 15; ++i) {
        ASSERT_EQ(c.values[static_cast<std::size_t>(product * 15 + i)],
                  one.values[static_cast<std::size_t>(i)]);
      }
    }
  }
}

// Megatron-LM's column-parallel and row-parallel layer on two ranks.
TEST(Multiply, SplitOverColumnsThenRowsSumsToTheWhole) {
  Matrix x = random_matrix(7, 6, 1), up = random_matrix(8, 6, 2), down = random_matrix(6, 8, 3);
  Matrix middle(7, 8), whole(7, 6), split(7, 6);
  const auto linear = [](Tensor in, Tensor weight, Tensor out, bool add) {
    Multiply call;
    call.a = in;
    call.b = weight;
    call.c = out;
    call.transpose_b = true;
    call.accumulate = add;
    return call;
  };
  run_on_cpu({linear(x, up, middle, false), linear(middle, down, whole, false)});
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    Matrix half(7, 4);
    Tensor rows_of_up = up, columns_of_down = Tensor(down).slice(rank * 4, 4);
    rows_of_up.data = up.values.data() + rank * 4 * 6;
    rows_of_up.rows = 4;
    run_on_cpu({linear(x, rows_of_up, half, false), linear(half, columns_of_down, split, rank > 0)});
  }
  expect_near(split, whole, 1e-5);
}

TEST(Multiply, RefusesOperandsThatDoNotFit) {
  Matrix a(2, 3), b(4, 2), c(2, 2);
  Multiply call;
  call.a = a;
  call.b = b;
  call.c = c;
  EXPECT_THROW(run_on_cpu({call}), DeviceError);
}

}  // namespace
}  // namespace rehearse::kernels
