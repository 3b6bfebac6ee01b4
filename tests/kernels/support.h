// Matrices that own their memory, a device to run calls on, and derivatives by differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "kernels/device.h"

namespace rehearse::kernels {

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;

  Matrix(std::int64_t height, std::int64_t width)
      : rows(height), columns(width), values(static_cast<std::size_t>(height * width)) {}
  operator Tensor() { return {values.data(), Type::fp32, rows, columns}; }
  float& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * columns + c)]; }
};

inline Matrix random_matrix(std::int64_t rows, std::int64_t columns, unsigned seed) {
  Matrix matrix(rows, columns);
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  for (float& value : matrix.values) value = number(bits);
  return matrix;
}

template <typename T>
Tensor vector_of(std::vector<T>& values, Type type) {
  return {values.data(), type, 1, static_cast<std::int64_t>(values.size())};
}

// Runs calls on the CPU, one after the other.
inline void run_on_cpu(const std::vector<Call>& calls, int threads = 1) {
  const std::unique_ptr<Device> device = open_cpu(threads);
  const std::unique_ptr<Stream> stream = device->make_stream();
  for (const Call& call : calls) stream->launch(call);
  stream->synchronize();
}

inline double dot(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) sum += double{a.values[i]} * double{b.values[i]};
  return sum;
}

inline void expect_near(const Matrix& actual, const Matrix& expected, double tolerance) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (std::size_t i = 0; i < actual.values.size(); ++i) {
    ASSERT_NEAR(actual.values[i], expected.values[i], tolerance * (1 + std::abs(expected.values[i])))
        << "element " << i;
  }
}

// Some elements of `gradient`, or all of a few, against the central difference of fourth order of `loss`
// (summed in double) in `x`. Its own error is near 1e-5: h^4 of the formula, 1e-7 / h of the kernels' fp32.
inline void expect_gradient(std::vector<float>& x, const std::vector<float>& gradient,
                            const std::function<double()>& loss, double tolerance = 2e-3) {
  const float h = 0.02F;
  constexpr std::size_t kSome = 23;
  std::mt19937 bits(9);
  for (std::size_t drawn = 0; drawn < std::min(kSome, x.size()); ++drawn) {
    const std::size_t i = x.size() <= kSome ? drawn : bits() % x.size();
    const float kept = x[i];
    const auto moved = [&](float steps) {
      x[i] = kept + steps * h;
      return loss();
    };
    const double slope = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12.0 * double{h});
    x[i] = kept;
    ASSERT_NEAR(gradient[i], slope, tolerance * (1 + std::abs(slope))) << "element " << i;
  }
}

}  // namespace rehearse::kernels
